//! What the promise on an answer rests on.

use serde::{Deserialize, Serialize};

use super::count;
use prime_bench::judge::detection::DetectionTable;
use prime_bench::judge::soundness::{ATTACKED, SoundnessTable};
use prime_bench::tasks::{Kind, Kinds};
use prime_protocol::Assurance;
use prime_roles::{Basis, CardQuote, Method};

/// The rate at which the verifier's constraints miss a wrong step of this task, as measured on the
/// benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Misses {
    /// Wrong steps that were tried, each in a reference trace of this task.
    pub tried: u64,
    /// Wrong steps that the constraints found.
    pub found: u64,
    /// The share that they missed, 0 to 1.
    pub rate: f64,
    /// The upper end of its one-sided 95 % confidence interval; above 0 even if nothing was missed.
    pub rate_bound: f64,
    /// The version of the table with these figures.
    pub table: String,
}

/// What attacks on the task found with `format`, `invariant` and `terminal`: clean traces that
/// leave the algorithm's path on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Attacks {
    /// Number of traces that were led off the path.
    pub tried: u64,
    /// Clean traces off the path that ended.
    pub ended: u64,
    /// Traces that ended in a wrong answer without breaking a constraint.
    pub wrong: u64,
    /// The version of the table with these figures.
    pub table: String,
}

/// What a verified or unrefuted answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunVerification))]
pub struct Verification {
    /// What is promised.
    #[serde(default)]
    pub assurance: Assurance,
    /// The verifier's name.
    pub verifier: String,
    /// How it judges. A model's `report`, `token` or `likelihood` is an opinion, which is not a
    /// kind of constraint.
    pub methods: Vec<Method>,
    /// The kinds of constraints that were evaluated, or that a program's owner says it checks. For
    /// an ensemble, those that at least half of the members check: the others cannot outvote them.
    pub kinds: Vec<Kind>,
    /// Steps of the answer's trajectory; the verifier found each of them clean.
    pub steps: u64,
    /// Left out where it was not measured: for problems outside the benchmark, models and programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<Misses>,
    /// Left out where these kinds were not evaluated, where every transition was compared, and
    /// outside the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attacks: Option<Attacks>,
    /// The verifier's card, if one is configured: how often it accepts what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardQuote>,
}

/// The kinds, as in `format, invariant`, then the methods other than the evaluation of constraints.
pub fn looked_at(kinds: &[Kind], methods: &[Method]) -> String {
    let opinions =
        methods.iter().filter(|method| **method != Method::Rules).map(|method| method.name());

    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).chain(opinions).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// What an assurance means, as a clause.
pub fn meaning(assurance: Assurance) -> &'static str {
    match assurance {
        Assurance::Verified => "no wrong answer of this task passes these checks",
        Assurance::Unrefuted => "no fault was found, which is no proof",
        Assurance::Unchecked => "nobody looked at some of its steps",
        Assurance::Violated => "a step broke a constraint, and the coordinator tolerated it",
    }
}

impl Verification {
    /// What the answer of `task` rests on, with the measured rates of this version for `basis`.
    /// `steps` is the length of the answer's trajectory.
    pub fn new(verifier: &str, assurance: Assurance, basis: Basis, task: &str, steps: u64) -> Self {
        let table = DetectionTable::current();
        // The form of lines is checked with every model; its opinion is what counts.
        let form = Kinds::from_iter([Kind::Format]);
        let measured = Some(basis.evaluated()).filter(|kinds| *kinds != form);
        let misses = measured.and_then(|kinds| table.detection(task, kinds));
        let misses = misses.map(|detection| Misses {
            tried: detection.tried,
            found: detection.found,
            rate: detection.miss_rate(),
            rate_bound: detection.miss_rate_bound(),
            table: DetectionTable::current_id().to_owned(),
        });

        let attacked = SoundnessTable::current();
        let attacks = attacked.row(task).filter(|_| basis.evaluated() == ATTACKED);
        let attacks = attacks.map(|row| Attacks {
            tried: row.attacks,
            ended: row.ended,
            wrong: row.wrong,
            table: attacked.id(),
        });

        Self {
            attacks,
            assurance,
            verifier: verifier.to_owned(),
            methods: basis.methods().collect(),
            kinds: basis.kinds().iter().collect(),
            steps,
            misses,
            card: None,
        }
    }

    /// The same, with what is quoted of the verifier's card.
    #[must_use]
    pub fn with_card(self, card: Option<CardQuote>) -> Self {
        Self { card, ..self }
    }

    /// One line about the verifier's card, such as `cards/tiny.json: accepted 3 of 120 runs with a
    /// wrong answer and 14 of 800 wrong steps`; `None` without a card.
    pub fn card_text(&self) -> Option<String> {
        let CardQuote { file, step_false_accepts: steps, run_false_accepts: runs, .. } =
            self.card.as_ref()?;
        Some(format!(
            "{file}: accepted {} of {} with a wrong answer and {} of {}",
            runs.count,
            count(runs.of, "run"),
            steps.count,
            count(steps.of, "wrong step")
        ))
    }

    /// One line, such as `verified (rules: format, invariant, terminal; 7 steps; 1359 clean traces
    /// off the algorithm's path ended right)`, or `verified: every transition (…)` where the steps
    /// were compared with the algorithm's.
    pub fn text(&self) -> String {
        let looked_at = looked_at(&self.kinds, &self.methods);
        let (verifier, steps) = (&self.verifier, count(self.steps, "step"));

        match self.assurance {
            Assurance::Verified if self.kinds.contains(&Kind::Transition) => {
                format!("verified: every transition ({verifier}: {looked_at}; {steps})")
            }
            Assurance::Verified => {
                // Where no trace could leave the path, nothing was shown by trying.
                let all_right = |Attacks { ended, .. }: &Attacks| {
                    format!(
                        "; {} off the algorithm's path ended right",
                        count(*ended, "clean trace")
                    )
                };
                let shown = self.attacks.as_ref().filter(|attacks| attacks.ended > 0);
                let attacks = shown.map(all_right).unwrap_or_default();
                format!("verified ({verifier}: {looked_at}; {steps}{attacks})")
            }
            other => {
                let why = match &self.attacks {
                    Some(Attacks { tried, wrong, .. }) if *wrong > 0 => format!(
                        "{wrong} of {tried} attacks on this task ended in a wrong answer that \
                         these checks let through"
                    ),
                    _ => meaning(other).to_owned(),
                };
                format!("{other} ({verifier}: {looked_at}; {steps}): {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_likelihood_is_named_as_what_it_is() {
        let basis = Basis::model(Method::Likelihood);
        let verification = Verification::new("tiny", Assurance::Unrefuted, basis, "bubble-sort", 1);
        let expected = json!({
            "assurance": "unrefuted", "verifier": "tiny", "methods": ["likelihood"],
            "kinds": ["format"], "steps": 1,
        });

        assert_eq!(serde_json::to_value(&verification).unwrap(), expected);
        assert_eq!(
            verification.text(),
            "unrefuted (tiny: format, likelihood; 1 step): no fault was found, which is no proof"
        );
    }

    #[test]
    fn a_verified_answer_says_whether_every_transition_was_compared() {
        let text = |kinds| {
            let basis = Basis::rules(kinds);
            Verification::new("rules", Assurance::Verified, basis, "bubble-sort", 312).text()
        };

        assert_eq!(
            text(Kinds::WITHOUT_TRANSITION),
            "verified (rules: format, invariant, terminal; 312 steps)"
        );
        assert_eq!(
            text(Kinds::ALL),
            "verified: every transition (rules: format, invariant, transition, terminal; 312 steps)"
        );
    }

    #[test]
    fn constraints_carry_what_they_miss_where_it_was_measured() {
        let of = |task| {
            let basis = Basis::rules(Kinds::WITHOUT_TRANSITION);
            Verification::new("rules", Assurance::Verified, basis, task, 2).misses
        };

        let misses = of("bubble-sort").expect("measured");
        assert!(misses.found <= misses.tried && misses.rate <= misses.rate_bound);
        assert!(misses.rate_bound > 0.0 && misses.table.starts_with("1-"), "{misses:?}");
        assert_eq!(of("problem"), None, "a client's problem is not in the benchmark");
    }
}
