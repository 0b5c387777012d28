//! Names of the benchmark's instances: `<task>/<difficulty>/<index>`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::spec::Difficulty;
use super::{AnyTask, BadInput, INDEX_LIMIT, INSTANCES, Problem};

/// Names one instance of one task under a base seed.
#[derive(Clone, Copy)]
pub struct InstanceId {
    /// The task.
    pub task: &'static dyn AnyTask,
    /// The level.
    pub difficulty: Difficulty,
    /// The index within the level, below [`INDEX_LIMIT`].
    pub index: u32,
    /// The base seed; 42 is the benchmark's.
    pub base_seed: u64,
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} (base seed {})", self.base_seed)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:03}", self.task.spec().slug, self.difficulty, self.index)
    }
}

/// An index that no instance has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "instance index {index} is out of range: give 0 to {}; the benchmark has 0 to {}",
    INDEX_LIMIT - 1,
    INSTANCES - 1
)]
pub struct NoSuchIndex {
    /// The index that was asked for.
    pub index: u32,
}

impl InstanceId {
    /// Names an instance.
    ///
    /// # Errors
    /// When the index is not below [`INDEX_LIMIT`].
    pub fn new(
        task: &'static dyn AnyTask,
        difficulty: Difficulty,
        index: u32,
        base_seed: u64,
    ) -> Result<Self, NoSuchIndex> {
        if index < INDEX_LIMIT {
            Ok(Self { task, difficulty, index, base_seed })
        } else {
            Err(NoSuchIndex { index })
        }
    }

    /// The seed of the instance's generator.
    pub fn seed(&self) -> u64 {
        self.task.spec().seed(self.base_seed, self.difficulty, self.index)
    }

    /// Generates the instance.
    pub fn problem(&self) -> Arc<dyn Problem> {
        self.task.instance(self.difficulty, self.base_seed, self.index)
    }
}

/// Reads a user's problem: the task's `input` object, or a whole line of a dataset whose `task` is
/// this one.
///
/// # Errors
/// Says which field is wrong.
pub fn read_problem(
    task: &'static dyn AnyTask,
    value: &Value,
) -> Result<Arc<dyn Problem>, BadInput> {
    let slug = task.spec().slug;
    let is_line = value.get("input").is_some_and(Value::is_object) && value.get("task").is_some();

    if !is_line {
        return task.read_input(value);
    }

    if value["task"] != slug {
        let detail =
            format!("field `task`: the instance is one of {}, not of {slug}", value["task"]);
        return Err(BadInput { task: slug, detail });
    }
    task.read_input(&value["input"])
}
