//! A checked system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::file::SystemSection;
use super::matched::{Samples, samples};
use crate::nearest::did_you_mean;

/// Style of the prompt of a single answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptStyle {
    /// The problem only (listing 1).
    Baseline,
    /// With constraints, verification procedure, worked example and output format (listing 2).
    Structured,
}

impl PromptStyle {
    /// Both styles, in the order of their names in messages.
    pub const ALL: [Self; 2] = [Self::Baseline, Self::Structured];

    /// The value of `prompt` in a study file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Structured => "structured",
        }
    }
}

/// Components of the structured prompt that can be left out.
pub const PROMPT_COMPONENTS: [&str; 4] = ["constraints", "verification", "examples", "format"];

/// The paper's baseline: one answer to one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneShot {
    /// Style of the prompt.
    pub style: PromptStyle,
    /// Components of the structured prompt that are left out; see [`PROMPT_COMPONENTS`].
    pub without: Vec<String>,
    /// Name of the pool of model servers that answers.
    pub pool: String,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
}

/// The paper's limit on the tokens of an answer (table 69).
const MAX_TOKENS: u32 = 4_096;

/// Where a system's answers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of outputs made elsewhere.
    Answers(PathBuf),
    /// One answer to one prompt.
    OneShot(OneShot),
    /// A run with executor, verifier and coordinator.
    Run {
        /// Preset of the configuration.
        preset: Option<String>,
    },
}

/// A system of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Name within the study: at most 64 characters, without control characters.
    pub name: String,
    /// Where its answers come from.
    pub source: Source,
    /// Options over the configuration, in the form of `--set`: `run.fanout=8`.
    pub sets: Vec<String>,
    /// How it draws samples, if it does.
    pub samples: Option<Samples>,
    /// True if its runs may spend as many tokens as another system did on the instance.
    pub is_matched: bool,
    /// True if it is the null executor that the study added.
    pub is_null: bool,
    /// Number of parameters of its model, if the file says it.
    pub parameters: Option<u64>,
    /// What sets it apart, as records write it: `name=value`, separated by commas.
    pub factors: Option<String>,
}

const NAME_MAX: usize = 64;

/// Checks a system and adds what is wrong with it to `problems`.
pub(super) fn system(section: &SystemSection, place: usize, problems: &mut Vec<String>) -> System {
    let at = if section.name.is_empty() {
        format!("system {place}")
    } else {
        format!("system `{}`", section.name)
    };

    let mut problem = |text: String| problems.push(format!("{at}: {text}"));

    if section.name.is_empty() {
        problem("`name` is missing; reports need one".to_owned());
    }
    if section.name.chars().count() > NAME_MAX || section.name.chars().any(char::is_control) {
        problem(format!(
            "`name` must have at most {NAME_MAX} characters, and no control characters"
        ));
    }

    let given = given(section);
    let source = match (&section.answers, &section.prompt) {
        (Some(_), _) if given.len() > 1 => {
            let others: Vec<_> = given
                .iter()
                .filter(|name| **name != "answers")
                .map(|name| format!("`{name}`"))
                .collect();
            problem(format!("`answers` takes outputs as they are: remove {}", others.join(", ")));
            // The source does not matter: the study is refused because of the problem.
            Source::Run { preset: None }
        }
        (Some(path), _) => Source::Answers(PathBuf::from(path)),
        (None, Some(style)) => one_shot(section, style, &mut problem),
        (None, None) => {
            if !section.without.is_empty() {
                problem(
                    "`without` is for the structured prompt: add `prompt = \"structured\"`"
                        .to_owned(),
                );
            }
            if section.pool.is_some() {
                problem(
                    "`pool` is for a prompt; for a run, choose `executor = \"openai\"` and set \
                     \"agents.executor.pool\""
                        .to_owned(),
                );
            }
            if section.max_tokens.is_some() {
                problem("`max_tokens` is for a prompt; a run has `budget.tokens`".to_owned());
            }
            Source::Run { preset: section.preset.clone() }
        }
    };

    if section.parameters == Some(0) {
        problem("`parameters` must be at least 1; leave it out if it is not known".to_owned());
    }

    let samples = samples(section, &source, &mut problem);
    System {
        factors: factors(section, &source, &mut problem),
        name: section.name.clone(),
        source,
        sets: sets(section, samples.is_some()),
        samples,
        is_matched: section.matched,
        is_null: false,
        parameters: section.parameters,
    }
}

/// The factors of a section, including those that its prompt implies.
fn factors(
    section: &SystemSection,
    source: &Source,
    problem: &mut impl FnMut(String),
) -> Option<String> {
    let mut factors: BTreeMap<&str, String> =
        section.factors.iter().map(|(name, value)| (name.as_str(), plain(value))).collect();
    // A factor that the file names takes precedence.
    if let Source::OneShot(one_shot) = source {
        factors.entry("prompt").or_insert_with(|| one_shot.style.name().to_owned());
        if !one_shot.without.is_empty() {
            factors.entry("without").or_insert_with(|| one_shot.without.join("+"));
        }
    }

    for (name, value) in &factors {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && !name.is_empty();
        if !is_name
            || value.is_empty()
            || value.chars().any(|c| matches!(c, ',' | '=') || c.is_control())
        {
            problem(format!(
                "factors: `{name} = {value}`: a name has letters, digits, `_` and `-`; a value is a text, number or \
                 flag without commas and `=`"
            ));
        }
    }

    let texts: Vec<String> =
        factors.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// A value as on the command line, where a text needs no quotes.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Options in the form of `--set`.
pub(super) fn options(set: &BTreeMap<String, toml::Value>) -> impl Iterator<Item = String> + '_ {
    set.iter().map(|(key, value)| format!("{key}={}", plain(value)))
}

/// Keys that a section gives, except its name and those that only describe the system.
fn given(section: &SystemSection) -> Vec<&'static str> {
    // Destructured, so that a new key cannot be forgotten here.
    let SystemSection {
        name: _,
        answers,
        prompt,
        without,
        pool,
        max_tokens,
        select,
        matched,
        samples,
        preset,
        strategy,
        executor,
        verifier,
        coordinator,
        parameters: _,
        factors: _,
        set,
    } = section;

    let options = [
        ("answers", answers),
        ("prompt", prompt),
        ("pool", pool),
        ("select", select),
        ("preset", preset),
        ("strategy", strategy),
        ("executor", executor),
        ("verifier", verifier),
        ("coordinator", coordinator),
    ];

    let mut given: Vec<_> =
        options.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect();
    given.extend(max_tokens.map(|_| "max_tokens"));
    given.extend(samples.map(|_| "samples"));
    given.extend(matched.then_some("matched"));
    given.extend((!without.is_empty()).then_some("without"));
    given.extend((!set.is_empty()).then_some("set"));
    given
}

fn one_shot(section: &SystemSection, style: &str, problem: &mut impl FnMut(String)) -> Source {
    let known = PromptStyle::ALL.map(PromptStyle::name);
    let style =
        PromptStyle::ALL.into_iter().find(|known| known.name() == style).unwrap_or_else(|| {
            problem(format!(
                "unknown prompt `{style}`{}: use one of {}",
                did_you_mean(style, known),
                known.join(", ")
            ));
            PromptStyle::Baseline
        });

    if style == PromptStyle::Baseline && !section.without.is_empty() {
        problem(
            "the baseline prompt has no components; `without` is for the structured one".to_owned(),
        );
    }

    for name in &section.without {
        if !PROMPT_COMPONENTS.contains(&name.as_str()) {
            let suggestion = did_you_mean(name, PROMPT_COMPONENTS);
            problem(format!(
                "without: unknown component `{name}`{suggestion}: use {}",
                PROMPT_COMPONENTS.join(", ")
            ));
        }
    }

    let roles = [
        ("preset", &section.preset),
        ("strategy", &section.strategy),
        ("executor", &section.executor),
        ("verifier", &section.verifier),
        ("coordinator", &section.coordinator),
    ];

    for (name, _) in roles.into_iter().filter(|(_, value)| value.is_some()) {
        problem(format!(
            "`{name}` is for runs, and a prompt is a single answer: remove one of them"
        ));
    }

    if section.pool.is_none() {
        problem("a prompt needs a chat model: name its `pool` of the configuration".to_owned());
    }
    if section.max_tokens == Some(0) {
        problem("`max_tokens` must be at least 1".to_owned());
    }

    Source::OneShot(OneShot {
        style,
        without: section.without.clone(),
        pool: section.pool.clone().unwrap_or_default(),
        max_tokens: section.max_tokens.unwrap_or(MAX_TOKENS),
    })
}

/// One trajectory without a verifier.
const SINGLE_PASS: [&str; 3] =
    ["run.fanout=1", "run.max_rounds=1", "agents.verifier.implementation=none"];

fn sets(section: &SystemSection, is_sampled: bool) -> Vec<String> {
    let named = [
        ("run.strategy", &section.strategy),
        ("agents.executor.implementation", &section.executor),
        ("agents.verifier.implementation", &section.verifier),
        ("agents.coordinator.implementation", &section.coordinator),
    ];

    let named =
        named.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
    let passes = SINGLE_PASS.iter().filter(|_| is_sampled).map(|set| (*set).to_owned());
    passes.chain(named).chain(options(&section.set)).collect()
}
