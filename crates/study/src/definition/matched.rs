//! Comparisons at equal spending, and systems that draw samples until it is reached.

use super::file::{BudgetSection, SystemSection};
use super::system::{Source, System};
use crate::nearest::did_you_mean;
use crate::records::Record;

/// The unit in which spending is made equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Generated tokens, and prompt tokens as [`Prompts`] says.
    Tokens,
    /// Wall time in seconds, from the moment at which a run has its places at the servers.
    Seconds,
}

/// Which prompt tokens count as spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prompts {
    /// The tokens that the model did not take from a cache.
    #[default]
    Computed,
    /// All tokens of the prompts.
    All,
    /// No tokens of the prompts: only generated tokens count.
    None,
}

/// Equal spending: on each instance, systems may spend what one of them spent there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// What is counted.
    pub unit: Unit,
    /// Name of the system whose spending is the budget of the others.
    pub to: String,
}

/// Which of several samples is the system's answer. None of the rules knows what is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The first one that comes to an answer.
    First,
    /// The answer that most samples gave; among tied answers, the one that was given first.
    Majority,
    /// The answer of the sample with the highest mean log-probability of its tokens.
    Likelihood,
    /// The last one that comes to an answer: each sample is asked to find and correct the mistakes
    /// of the one before.
    Refine,
}

impl Select {
    /// All rules, in the order of their names in messages.
    pub const ALL: [Self; 4] = [Self::First, Self::Majority, Self::Likelihood, Self::Refine];

    /// The value of `select` in a study file.
    pub fn name(self) -> &'static str {
        ["first", "majority", "likelihood", "refine"][self as usize]
    }
}

/// How a system draws samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// The rule that selects the answer.
    pub select: Select,
    /// Maximum number of samples; `None` where the budget alone ends them.
    pub most: Option<u32>,
}

impl Prompts {
    const NAMES: [(&'static str, Self); 3] =
        [("computed", Self::Computed), ("all", Self::All), ("none", Self::None)];

    /// Number of tokens that count as spent: the generated ones and those of the prompts that this
    /// rule counts. Where the number of cached tokens is unknown, `cached` is 0.
    pub fn tokens(self, prompt: u64, cached: u64, completion: u64) -> u64 {
        let prompt = match self {
            Self::Computed => prompt.saturating_sub(cached),
            Self::All => prompt,
            Self::None => 0,
        };
        prompt.saturating_add(completion)
    }
}

impl Matched {
    /// What a run spent, in tokens or seconds.
    pub fn spent(&self, record: &Record, prompts: Prompts) -> f64 {
        match self.unit {
            Unit::Tokens => {
                let cached = record.cached_tokens.unwrap_or_default();
                prompts.tokens(record.prompt_tokens, cached, record.completion_tokens) as f64
            }
            Unit::Seconds => record.wall_ms / 1e3,
        }
    }
}

fn one_of<T: Copy>(
    key: &str,
    name: &str,
    known: &[(&'static str, T)],
    problems: &mut Vec<String>,
) -> Option<T> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let suggestion = did_you_mean(name, names.iter().copied());
        problems.push(format!(
            "{key}: unknown name `{name}`{suggestion}: use one of {}",
            names.join(", ")
        ));
    }
    found
}

/// Reads which prompt tokens count as spent.
pub(super) fn prompts(budget: &BudgetSection, problems: &mut Vec<String>) -> Prompts {
    let name = budget.prompts.as_deref();
    name.and_then(|name| one_of("budget.prompts", name, &Prompts::NAMES, problems))
        .unwrap_or_default()
}

/// Checks how spending is made equal.
pub(super) fn matched(
    budget: &BudgetSection,
    systems: &[System],
    problems: &mut Vec<String>,
) -> Option<Matched> {
    let Some(name) = &budget.matched else {
        if budget.match_to.is_some() {
            problems.push(
                "budget.match_to: says whose spending, but not what: add `match = \"tokens\"`"
                    .to_owned(),
            );
        }
        return None;
    };
    let units = [("tokens", Unit::Tokens), ("seconds", Unit::Seconds)];
    let unit = one_of("budget.match", name, &units, problems)?;

    let first = systems.first().map(|system| system.name.clone());
    let to = budget.match_to.clone().or(first)?;
    let Some(system) = systems.iter().find(|system| system.name == to) else {
        let known: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
        problems.push(format!(
            "budget.match_to: there is no system `{to}`{}: use one of {}",
            did_you_mean(&to, known.iter().copied()),
            known.join(", ")
        ));
        return None;
    };
    if system.samples.is_some() || matches!(system.source, Source::Answers(_)) {
        problems.push(format!(
            "budget.match_to: `{to}` spends nothing of its own accord: name a system of runs or \
             one with a prompt, without `select`"
        ));
    }
    Some(Matched { unit, to })
}

/// Checks how a system draws samples.
pub(super) fn samples(
    section: &SystemSection,
    source: &Source,
    problem: &mut impl FnMut(String),
) -> Option<Samples> {
    let Some(name) = &section.select else {
        if section.samples.is_some() {
            problem(
                "`samples` says how many, but not which of them is the answer: add `select`"
                    .to_owned(),
            );
        }
        return None;
    };

    let mut problems = Vec::new();
    let known = Select::ALL.map(|select| (select.name(), select));
    let select = one_of("select", name, &known, &mut problems);
    problems.into_iter().for_each(&mut *problem);
    if section.samples == Some(0) {
        problem("`samples` must be at least 1".to_owned());
    }
    if select == Some(Select::Refine) && matches!(source, Source::Run { .. }) {
        problem(
            "`select = \"refine\"` shows a model its whole answer: add a `prompt` and a `pool`"
                .to_owned(),
        );
    }
    Some(Samples { select: select?, most: section.samples })
}

/// Checks that all samples come to an end.
pub(super) fn check_ends(systems: &[System], has_match: bool, problems: &mut Vec<String>) {
    let endless = |system: &&System| {
        system.samples.is_some_and(|samples| samples.most.is_none()) && !has_match
    };
    for system in systems.iter().filter(endless) {
        problems.push(format!(
            "system `{}`: nothing ends its samples: say how many (`samples = 16`), or make its \
             spending equal to another system's (`budget.match`)",
            system.name
        ));
    }
}

/// Checks that runs with `matched` can end at another system's spending: the budget of a run knows
/// neither caches nor the seconds of others.
pub(super) fn check_matched(
    systems: &[System],
    matched: Option<&Matched>,
    prompts: Prompts,
    problems: &mut Vec<String>,
) {
    for system in systems.iter().filter(|system| system.is_matched) {
        let what = match matched {
            _ if system.samples.is_some() || !matches!(system.source, Source::Run { .. }) => {
                "is for systems of runs without `select`, which has it by itself"
            }
            Some(Matched { to, .. }) if *to == system.name => {
                "is its own measure: remove it, or name another system (`budget.match_to`)"
            }
            Some(Matched { unit: Unit::Tokens, .. }) if prompts != Prompts::Computed => continue,
            Some(Matched { unit: Unit::Tokens, .. }) => {
                "cannot end a run by the prompt tokens that no cache had: set `budget.prompts` to \
                 `all` or `none`"
            }
            Some(Matched { unit: Unit::Seconds, .. }) => {
                "makes tokens equal, not seconds: set `budget.match = \"tokens\"`"
            }
            None => "is equal to nothing: add `budget.match = \"tokens\"`",
        };
        problems.push(format!("system `{}`: `matched = true` {what}", system.name));
    }
}
