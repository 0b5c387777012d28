//! The null executor, which knows nothing: what it solves, search solves.

use prime_bench::tasks::{AnyTask, Difficulty};

use super::check::Study;
use super::system::{Source, System};

/// The implementation of the executor, and the name of its system.
const UNIFORM: &str = "uniform";

/// True if the choices of a task's states can be listed.
pub(super) fn has_choices(task: &dyn AnyTask) -> bool {
    task.instance(Difficulty::Easy, 0, 0).start().choices().is_some()
}

impl Study {
    /// Adds the null executor as the last system, unless no task has choices, or a system has its
    /// name or its executor.
    pub(super) fn add_null(&mut self) {
        let set = format!("agents.executor.implementation={UNIFORM}");
        let is_there = |system: &System| system.name == UNIFORM || system.sets.contains(&set);
        let is_run = |system: &System| !matches!(system.source, Source::Answers(_));
        // Whether the user's own tasks have choices is known only when they are given.
        let has_choices =
            !self.ask.own.is_empty() || self.ask.tasks.iter().any(|task| has_choices(*task));
        let is_wanted = has_choices && self.systems.iter().any(is_run);
        if !is_wanted || self.systems.iter().any(is_there) {
            return;
        }

        self.systems.push(System {
            name: UNIFORM.to_owned(),
            source: Source::Run { preset: None },
            sets: vec![set],
            samples: None,
            is_matched: false,
            is_null: true,
            parameters: None,
            factors: None,
        });
    }
}
