//! The instances that are practised, and those that are held out.

use std::sync::Arc;

use prime_bench::curriculum::{PHASES, Phase};
use prime_bench::tasks::{Difficulty, Machine, Problem, TaskRng};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::evaluation::Held;
use super::recipe::{Curriculum, Data};
use crate::TrainError;
use crate::states::{Source, sources};

/// Instances of a base seed that differ from each other.
const INDICES: u64 = 1_000;

/// The tasks of a recipe.
pub struct Practice {
    names: Vec<String>,
    tasks: Vec<Source>,
    data: Data,
}

impl Practice {
    /// Finds the tasks that the recipe names.
    ///
    /// # Errors
    /// If there is no task with a name, the benchmark has nearly all inputs of one, a task has no
    /// lesson, or its derivations look values up.
    pub fn new(data: &Data) -> Result<Self, TrainError> {
        let levels = match &data.curriculum {
            Curriculum::Levels(levels) => levels.clone(),
            Curriculum::Phases | Curriculum::Success(_) => Difficulty::ALL.to_vec(),
        };
        let base_seeds = [data.training_base_seed, data.held_out_base_seed];
        let tasks = sources(&data.tasks, &data.benchmark_inputs, &levels, base_seeds)?;

        for name in &data.tasks {
            if !prime_lessons::has_lesson(name) {
                return Err(TrainError::NoLesson { task: name.clone() });
            }
            if prime_lessons::reads_max(name) > 0 {
                return Err(TrainError::Recipe(format!(
                    "data.tasks: the derivations of {name} look values up, which reinforcement learning does not"
                )));
            }
        }
        Ok(Self { names: data.tasks.clone(), tasks, data: data.clone() })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The levels to practise when the fraction `spent` of the budget is used, and `held` is the
    /// latest evaluation.
    pub fn levels(&self, spent: f64, held: &[Held]) -> Vec<Difficulty> {
        let all = Difficulty::ALL;
        match &self.data.curriculum {
            Curriculum::Levels(levels) => levels.clone(),
            Curriculum::Phases => {
                let [.., last] = PHASES;
                let is_present = |phase: &Phase| {
                    spent < f64::from(phase.last_epoch) / f64::from(last.last_epoch)
                };
                PHASES.into_iter().find(is_present).unwrap_or(last).difficulties.to_vec()
            }
            Curriculum::Success(share) => {
                let is_mastered = |level: &Difficulty| {
                    let mut of_level =
                        held.iter().filter(|held| held.difficulty == *level).peekable();
                    of_level.peek().is_some() && of_level.all(|held| held.solved_share() >= *share)
                };

                let mastered = all.iter().take_while(|level| is_mastered(level)).count();
                all[..(mastered + 1).min(all.len())].to_vec()
            }
        }
    }

    /// Draws a training instance of one of the levels; returns its task, and its machine at the
    /// start.
    pub fn draw(&self, levels: &[Difficulty], rng: &mut ChaCha8Rng) -> (usize, Box<dyn Machine>) {
        let mut rng = TaskRng::new(rng.next_u64());
        let task = rng.index(self.tasks.len());

        let level = levels[rng.index(levels.len())];
        let Data { training_base_seed, augmentation, .. } = self.data;
        let problem = self.tasks[task].training(level, training_base_seed, augmentation, &mut rng);
        (task, problem.start())
    }

    /// The held-out instances of a task and level, always the same.
    pub fn held_out(&self, task: usize, level: Difficulty, count: u32) -> Vec<Box<dyn Machine>> {
        let source = &self.tasks[task];
        let problem = |place: u64| -> Arc<dyn Problem> {
            let index = u32::try_from(place % INDICES).expect("invariant: below 1,000");
            let base_seed = self.data.held_out_base_seed + place / INDICES;
            source.task.generate(level, source.task.spec().seed(base_seed, level, index))
        };

        // `sources` has found that enough instances are allowed.
        (0..)
            .map(problem)
            .filter(|problem| source.allows_in(true, problem.as_ref()))
            .take(count as usize)
            .map(|problem| problem.start())
            .collect()
    }
}
