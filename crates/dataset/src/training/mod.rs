//! Data to train models elsewhere: a folder of Parquet files, one for each task, in the chat
//! format, with a card.
//!
//! - `sft`: reference steps, or whole reference traces. `dpo`: preference pairs, from references
//!   and from traces of runs. `grpo`: prompts with the columns that reward functions need.
//! - `folder`: writes them.

mod candidates;
mod dpo;
mod folder;
mod grpo;
mod recorded;
mod sft;
mod states;

use prime_bench::curriculum::PHASES;
use prime_bench::prompts::{Components, Style, whole};
use prime_bench::tasks::{Difficulty, InstanceId, Machine, Problem};
use prime_lessons::compact;
use serde_json::json;

use super::table::{Column, Message};

pub use folder::{Summary, write};
pub use recorded::{Preference, Recorded, TraceError, read_trace};

/// The kind of data to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Supervised fine-tuning: prompts with completions.
    Sft,
    /// Preference optimisation: prompts, each with a completion to prefer and one to reject.
    Dpo,
    /// Reinforcement learning: prompts with the columns that reward functions need.
    Grpo,
}

impl Kind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Dpo => "dpo",
            Self::Grpo => "grpo",
        }
    }
}

/// What a prompt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The next step, in the one-line prompt of small models, with a derivation before the action.
    Step,
    /// The whole trace and the answer; with the style `turns`, an action a turn.
    Whole(Style),
}

impl Ask {
    /// Its name in the column `style` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "compact",
            Self::Whole(style) => style.name(),
        }
    }

    /// This prompt, or the structured one if the style does not suit the task.
    fn suited(self, problem: &dyn Problem) -> Self {
        match self {
            Self::Whole(style) if !style.suits(problem.spec().category) => {
                Self::Whole(Style::Structured(Components::ALL))
            }
            ask => ask,
        }
    }

    fn prompt(self, machine: &dyn Machine) -> String {
        match self {
            Self::Step => compact(machine),
            Self::Whole(style) => whole(machine.problem().as_ref(), style),
        }
    }
}

/// How rows are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kind of data.
    pub kind: Kind,
    /// Styles; at least one. Each instance gets one of them, drawn by its seed.
    pub asks: Vec<Ask>,
    /// Upper limit on the steps of an instance that become rows, spread evenly over its trace.
    pub steps_max: u64,
    /// Longest reference trace that is written as a whole; instances with longer ones are left out.
    pub lines_max: u64,
    /// True if instances are kept whose inputs the benchmark has, whatever their seeds.
    pub benchmark_inputs: bool,
}

impl Options {
    fn ask(&self, id: &InstanceId, problem: &dyn Problem) -> Ask {
        let place = id.seed() % self.asks.len().max(1) as u64;
        let ask = usize::try_from(place)
            .ok()
            .and_then(|place| self.asks.get(place))
            .copied()
            .unwrap_or(Ask::Step);

        ask.suited(problem)
    }
}

/// The phase of the paper's curriculum, from 1, in which a level is first seen.
fn phase(difficulty: Difficulty) -> i32 {
    let place = PHASES.iter().position(|phase| phase.difficulties.contains(&difficulty));
    place.and_then(|place| i32::try_from(place + 1).ok()).unwrap_or_default()
}

fn user(content: String) -> Vec<Message> {
    vec![Message { role: "user", content }]
}

fn assistant(content: String) -> Vec<Message> {
    vec![Message { role: "assistant", content }]
}

/// An instance as JSON, for reward functions that get a single text:
/// `prime_bench.dataset.instance_of` reads it.
fn label(id: &InstanceId) -> String {
    let InstanceId { task, difficulty, index, base_seed } = id;
    json!({
        "task": task.spec().slug,
        "difficulty": difficulty.name(),
        "index": index,
        "base_seed": base_seed,
    })
    .to_string()
}

/// The columns that name the instance of each row.
fn instance_columns<'i>(ids: impl Iterator<Item = &'i InstanceId> + Clone) -> Vec<Column> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    vec![
        Column::texts("task", ids.clone().map(|id| id.task.spec().slug)),
        Column::texts("category", ids.clone().map(|id| id.task.spec().category.name())),
        Column::texts("difficulty", ids.clone().map(|id| id.difficulty.name())),
        Column::small("index", ids.clone().map(|id| i32::try_from(id.index).unwrap_or(i32::MAX))),
        Column::large("base_seed", ids.clone().map(move |id| number(id.base_seed))),
        Column::small("phase", ids.map(|id| phase(id.difficulty))),
    ]
}

#[cfg(test)]
mod tests;
