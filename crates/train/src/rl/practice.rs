//! The instances that are practised, and those that are held out.

use prime_bench::augmentation::augmented;
use prime_bench::curriculum::{PHASES, Phase};
use prime_bench::tasks::sampling::instance;
use prime_bench::tasks::{self, AnyTask, Difficulty, Machine, TaskRng};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::evaluation::Held;
use super::recipe::{Curriculum, Data};
use crate::TrainError;

/// The tasks of a recipe.
pub struct Practice {
    names: Vec<String>,
    tasks: Vec<&'static dyn AnyTask>,
    data: Data,
}

impl Practice {
    /// Finds the tasks that the recipe names.
    ///
    /// # Errors
    /// If there is no task with a name, a task has no lesson, or its derivations look values up.
    pub fn new(data: &Data) -> Result<Self, TrainError> {
        let tasks = data.tasks.iter().map(|name| tasks::find(name)).collect::<Result<_, _>>()?;
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
        let problem = instance(self.tasks[task], level, self.data.training_base_seed, &mut rng);
        let problem = if self.data.augmentation {
            augmented(self.tasks[task], problem, &mut rng)
        } else {
            problem
        };
        (task, problem.start())
    }

    /// The held-out instances of a task and level, always the same.
    pub fn held_out(&self, task: usize, level: Difficulty, count: u32) -> Vec<Box<dyn Machine>> {
        let task = self.tasks[task];
        let seed = |index| task.spec().seed(self.data.held_out_base_seed, level, index);
        (0..count).map(|index| task.generate(level, seed(index)).start()).collect()
    }
}
