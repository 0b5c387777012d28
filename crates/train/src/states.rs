//! Draws states of reference traces by task, difficulty and split (training or held out). Knows no
//! prompts.

use super::Data;
use std::sync::Arc;

use prime_bench::augmentation::augmented;
use prime_bench::tasks::sampling::{instance, state_on_trace};
use prime_bench::tasks::{self, AnyTask, Difficulty, Machine, Problem, TaskRng, UnknownTask};

/// Draws states from the reference traces of some tasks.
#[derive(Clone)]
pub struct States {
    names: Vec<String>,
    tasks: Vec<&'static dyn AnyTask>,
    data: Data,
}

impl States {
    /// Finds the tasks that the data names.
    ///
    /// # Errors
    /// If there is no task with a name.
    pub fn new(data: &Data) -> Result<Self, UnknownTask> {
        let tasks = data.tasks.iter().map(|name| tasks::find(name)).collect::<Result<_, _>>()?;
        Ok(Self { names: data.tasks.clone(), tasks, data: data.clone() })
    }

    /// Slugs, in the recipe's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Draws a training instance of this task.
    pub fn instance(&self, task: usize, rng: &mut TaskRng) -> Arc<dyn Problem> {
        let difficulty = difficulty_of(self.data.difficulty_mix, rng);
        let task = self.tasks[task];
        let problem = instance(task, difficulty, self.data.training_base_seed, rng);
        if self.data.augmentation { augmented(task, problem, rng) } else { problem }
    }

    /// Draws a state of this task that has a next step; `held_out` draws from instances that are
    /// not trained on.
    pub fn draw(&self, task: usize, held_out: bool, rng: &mut TaskRng) -> Box<dyn Machine> {
        let base_seed =
            if held_out { self.data.held_out_base_seed } else { self.data.training_base_seed };
        let difficulty = difficulty_of(self.data.difficulty_mix, rng);
        state_on_trace(self.tasks[task], difficulty, base_seed, rng)
    }
}

fn difficulty_of(mix: [u64; 3], rng: &mut TaskRng) -> Difficulty {
    let mut left = rng.below(mix.iter().sum());
    for (difficulty, share) in Difficulty::ALL.into_iter().zip(mix) {
        if left < share {
            return difficulty;
        }
        left -= share;
    }
    Difficulty::Hard
}
