//! The approaches that `bench strategies` compares, as settings.

use clap::ValueEnum;

use crate::evaluation::strategies::Approach;
use prime_settings::{GroupSize, Settings, StrategyName, VoteName};

/// The approaches with their settings.
pub type Approaches = Vec<(Approach, Settings)>;

/// A variant of the strategy `iterative`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// The votes that are not configured: majority, weighted, tolerance
    Votes,
    /// The executor `escalation`, if its small and large executors differ
    Escalation,
    /// Fan-out by the difficulty of a problem
    DynamicGroup,
}

fn named(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The approach of settings; `what` is what they change besides the strategy.
fn approach(settings: &Settings, what: &str, is_baseline: bool) -> Approach {
    let strategy = named(&settings.run.strategy);
    Approach {
        name: if what.is_empty() { strategy.clone() } else { format!("{strategy}, {what}") },
        strategy,
        vote: named(&settings.run.vote),
        executor: settings.agents.executor.implementation.clone(),
        verifier: settings.agents.verifier.implementation.clone(),
        is_baseline,
    }
}

/// One greedy pass without a verifier.
fn baseline(settings: &Settings) -> (Approach, Settings) {
    let mut settings = settings.clone();
    settings.run.strategy = StrategyName::Greedy;
    settings.run.max_rounds = 1;
    settings.agents.verifier.choose("none");
    (approach(&settings, "one round (baseline)", true), settings)
}

/// The settings with the executor `escalation`; `None` if its small and large executors are the
/// same, which would only cost more.
pub fn escalating(settings: &Settings) -> Option<Settings> {
    let escalation = &settings.agents.executor.escalation;
    if escalation.small == escalation.large {
        return None;
    }
    let mut settings = settings.clone();
    "escalation".clone_into(&mut settings.agents.executor.implementation);
    Some(settings)
}

/// The variants with their descriptions.
fn varied(settings: &Settings, variants: &[Variant]) -> Vec<(String, Settings)> {
    let mut all = Vec::new();
    for variant in variants {
        match variant {
            Variant::Votes => {
                for vote in
                    VoteName::value_variants().iter().filter(|vote| **vote != settings.run.vote)
                {
                    let mut settings = settings.clone();
                    settings.run.vote = *vote;
                    all.push((format!("vote {}", named(vote)), settings));
                }
            }
            Variant::Escalation => {
                let Some(settings) = escalating(settings) else { continue };
                let escalation = &settings.agents.executor.escalation;
                let what = format!(
                    "escalation ({} × {}, {})",
                    escalation.samples, escalation.small, escalation.large
                );
                all.push((what, settings));
            }
            Variant::DynamicGroup => {
                let mut settings = settings.clone();
                settings.run.group.size = GroupSize::Dynamic;
                all.push((
                    format!("group {} to {}", settings.run.group.min, settings.run.group.max),
                    settings,
                ));
            }
        }
    }
    all
}

/// The baseline, each strategy with each verifier, and the variants with the first verifier.
pub fn approaches(
    settings: &Settings,
    strategies: &[StrategyName],
    verifiers: &[String],
    variants: &[Variant],
) -> Approaches {
    let with = |strategy: StrategyName, verifier: &String| {
        let mut settings = settings.clone();
        settings.run.strategy = strategy;
        settings.agents.verifier.choose(verifier);
        settings
    };

    let mut all = vec![baseline(settings)];
    for strategy in strategies {
        for verifier in verifiers {
            let settings = with(*strategy, verifier);
            all.push((approach(&settings, "", false), settings));
        }

        if let (StrategyName::Iterative, Some(verifier)) = (strategy, verifiers.first()) {
            let varied = varied(&with(*strategy, verifier), variants).into_iter();
            all.extend(
                varied.map(|(what, settings)| (approach(&settings, &what, false), settings)),
            );
        }
    }

    // A strategy or verifier that is named twice is measured once.
    let mut unique = Approaches::new();
    for (approach, settings) in all {
        if !unique.iter().any(|(known, _)| *known == approach) {
            unique.push((approach, settings));
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(Approach, Settings)]) -> Vec<(&str, &str)> {
        all.iter()
            .map(|(approach, _)| (approach.name.as_str(), approach.verifier.as_str()))
            .collect()
    }

    fn scripted() -> Settings {
        let mut settings = Settings::default();
        "scripted".clone_into(&mut settings.agents.executor.implementation);
        settings
    }

    #[test]
    fn each_strategy_meets_each_verifier_and_the_baseline_comes_first() {
        let verifiers = ["rules".to_owned(), "none".to_owned()];
        let strategies = [StrategyName::Greedy, StrategyName::Ahead, StrategyName::Greedy];
        let all = approaches(&scripted(), &strategies, &verifiers, Variant::value_variants());
        let expected = [
            ("greedy, one round (baseline)", "none"),
            ("greedy", "rules"),
            ("greedy", "none"),
            ("ahead", "rules"),
            ("ahead", "none"),
        ];
        assert_eq!(labels(&all), expected, "a repeated strategy is measured once");
        assert!(all.iter().all(|(_, settings)| settings.validate().is_ok()));

        let (baseline, settings) = &all[0];
        assert!(
            baseline.is_baseline
                && settings.run.max_rounds == 1
                && settings.run.strategy == StrategyName::Greedy
        );
    }

    #[test]
    fn variants_are_of_iterative_with_the_first_verifier() {
        let verifiers = ["strict".to_owned(), "none".to_owned()];
        let all = approaches(
            &scripted(),
            &[StrategyName::Iterative],
            &verifiers,
            Variant::value_variants(),
        );

        let expected = [
            ("greedy, one round (baseline)", "none"),
            ("iterative", "strict"),
            ("iterative", "none"),
            ("iterative, vote tolerance", "strict"),
            ("iterative, vote weighted", "strict"),
            ("iterative, group 2 to 16", "strict"),
        ];

        assert_eq!(labels(&all), expected);
        assert!(all.iter().all(|(_, settings)| settings.validate().is_ok()));
        assert_eq!(all[5].1.run.group.size, GroupSize::Dynamic);
    }

    #[test]
    fn escalation_is_measured_where_its_executors_differ() {
        let mut settings = scripted();
        assert_eq!(escalating(&settings), None, "the shipped ones are the same");
        "scripted".clone_into(&mut settings.agents.executor.escalation.small);
        "reference".clone_into(&mut settings.agents.executor.escalation.large);

        let all = approaches(
            &settings,
            &[StrategyName::Iterative],
            &["rules".to_owned()],
            &[Variant::Escalation],
        );

        assert_eq!(labels(&all)[2], ("iterative, escalation (2 × scripted, reference)", "rules"));
        assert_eq!(all[2].0.executor, "escalation");
        assert!(all[2].1.validate().is_ok());
    }
}
