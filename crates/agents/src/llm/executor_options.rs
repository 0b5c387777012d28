//! The configuration of an executor that asks a model.

use std::collections::BTreeMap;

use crate::prompt::{History, Shown};
use prime_settings::{ChoicesName, DeriveName, Thinking};

/// The template of models that have learnt the lessons: they alone know queries.
pub(super) const COMPACT: &str = "executor/compact.j2";

/// The options of an executor that asks a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorOptions {
    /// Its name in the configuration and in messages.
    pub name: String,
    /// The name of the prompt template: `executor/compact.j2`, `executor/step.j2` or a user's own.
    pub template: String,
    /// Further templates: the trajectories of a round take `template` and these in turn.
    pub variants: Vec<String>,
    /// The name of the system prompt's template.
    pub system: Option<String>,
    /// Which of the committed steps its prompts include.
    pub history: History,
    /// True if the task's grammar constrains the completion: at most one free line, then an action.
    /// Otherwise the last line counts, without surrounding whitespace and backquotes.
    pub grammar: bool,
    /// True if the grammar leaves out the lines that were rejected at this state.
    pub exclude_rejected: bool,
    /// When a free line may come before the action, under a grammar.
    pub derive: DeriveName,
    /// Maximum characters of the free line; 0 = no limit.
    pub derive_characters: u32,
    /// When the grammar lists the state's choices.
    pub choices: ChoicesName,
    /// How much the model may think before its answer.
    pub thinking: Thinking,
    /// What its prompts show, and how.
    pub shown: Shown,
    /// Maximum tokens of a completion, at least 1. The last line of a truncated completion is
    /// judged as it is.
    pub max_tokens: u32,
    /// Overrides the run's temperature; 0 is greedy.
    pub temperature: Option<f32>,
    /// Overrides the run's `top_p`.
    pub top_p: Option<f32>,
    /// User-defined template variables.
    pub variables: BTreeMap<String, String>,
}

impl ExecutorOptions {
    /// The prompt that the built-in models were trained on: one line, with grammar, without
    /// history.
    pub fn compact(name: impl Into<String>, max_tokens: u32) -> Self {
        Self {
            name: name.into(),
            template: COMPACT.to_owned(),
            variants: Vec::new(),
            system: None,
            history: History::None,
            grammar: true,
            exclude_rejected: true,
            derive: DeriveName::Always,
            derive_characters: 0,
            choices: ChoicesName::AfterRejections,
            thinking: Thinking::AsModel,
            shown: Shown::default(),
            max_tokens,
            temperature: None,
            top_p: None,
            variables: BTreeMap::new(),
        }
    }

    /// For instruction-following models: the whole task in words, the last steps, a free answer.
    pub fn step(name: impl Into<String>, max_tokens: u32) -> Self {
        Self {
            template: "executor/step.j2".to_owned(),
            history: History::Window(8),
            grammar: false,
            ..Self::compact(name, max_tokens)
        }
    }
}
