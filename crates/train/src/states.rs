//! Draws states of reference traces by task, difficulty and split (training or held out). Knows no
//! prompts.

use super::{Data, TrainError};
use std::sync::Arc;

use prime_bench::augmentation::augmented;
use prime_bench::tasks::inputs::{ensure_fresh, is_held_out, is_in_benchmark};
use prime_bench::tasks::sampling::{instance_that, state_on_trace_of};
use prime_bench::tasks::{self, AnyTask, Difficulty, InstanceId, Machine, Problem, TaskRng};

/// Instances among which each part must have one.
const INSTANCES_MAX: u32 = 1_000;

/// Draws states from the reference traces of some tasks.
#[derive(Clone)]
pub struct States {
    names: Vec<String>,
    tasks: Vec<Source>,
    data: Data,
}

impl States {
    /// Finds the tasks that the data names.
    ///
    /// # Errors
    /// If there is no task with a name, or the benchmark has nearly all inputs of a task that
    /// `data.benchmark_inputs` does not name.
    pub fn new(data: &Data) -> Result<Self, TrainError> {
        let levels: Vec<_> = Difficulty::ALL
            .into_iter()
            .zip(data.difficulty_mix)
            .filter(|(_, share)| *share > 0)
            .map(|(difficulty, _)| difficulty)
            .collect();

        let base_seeds = [data.training_base_seed, data.held_out_base_seed];
        let tasks = sources(&data.tasks, &data.benchmark_inputs, &levels, base_seeds)?;
        Ok(Self { names: data.tasks.clone(), tasks, data: data.clone() })
    }

    /// Slugs, in the recipe's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Draws a training instance of this task.
    pub fn instance(&self, task: usize, rng: &mut TaskRng) -> Arc<dyn Problem> {
        let difficulty = difficulty_of(self.data.difficulty_mix, rng);
        let source = &self.tasks[task];
        source.training(difficulty, self.data.training_base_seed, self.data.augmentation, rng)
    }

    /// Draws a state of this task that has a next step; `held_out` draws from instances whose
    /// inputs are never trained on.
    pub fn draw(&self, task: usize, held_out: bool, rng: &mut TaskRng) -> Box<dyn Machine> {
        let base_seed =
            if held_out { self.data.held_out_base_seed } else { self.data.training_base_seed };
        let difficulty = difficulty_of(self.data.difficulty_mix, rng);

        let problem = self.tasks[task].instance(difficulty, base_seed, held_out, rng);
        state_on_trace_of(problem.as_ref(), rng)
    }
}

/// A task whose instances are drawn.
#[derive(Clone, Copy)]
pub struct Source {
    pub task: &'static dyn AnyTask,
    /// True if inputs that the benchmark has may be drawn.
    meets_benchmark: bool,
}

impl Source {
    /// Returns whether the recipe allows this instance.
    fn allows(&self, problem: &dyn Problem) -> bool {
        self.meets_benchmark || !is_in_benchmark(problem)
    }

    /// Draws an instance of one part of the allowed inputs: those that are trained on, or those
    /// that are held out.
    fn instance(
        &self,
        difficulty: Difficulty,
        base_seed: u64,
        held_out: bool,
        rng: &mut TaskRng,
    ) -> Arc<dyn Problem> {
        let fits = |problem: &dyn Problem| self.allows_in(held_out, problem);
        instance_that(self.task, difficulty, base_seed, rng, fits)
    }

    /// Returns whether the instance is allowed, and in this part.
    pub fn allows_in(&self, held_out: bool, problem: &dyn Problem) -> bool {
        self.allows(problem) && is_held_out(problem) == held_out
    }

    /// Makes sure that both parts have instances at a level.
    fn ensure_parts(
        &self,
        difficulty: Difficulty,
        [training, held_out]: [u64; 2],
    ) -> Result<(), TrainError> {
        for (base_seed, is_held_out) in [(training, false), (held_out, true)] {
            let is_in_part = |index| {
                let id = InstanceId { task: self.task, difficulty, index, base_seed };
                self.allows_in(is_held_out, id.problem().as_ref())
            };
            if !(0..INSTANCES_MAX).any(is_in_part) {
                let purpose = if is_held_out { "hold out" } else { "train on" };
                return Err(TrainError::Recipe(format!(
                    "data.tasks: {}, {difficulty}: none of the first {INSTANCES_MAX} instances of \
                     base seed {base_seed} has an input to {purpose}; there are too few different \
                     inputs. Leave the task or the level out",
                    self.task.spec().slug
                )));
            }
        }
        Ok(())
    }

    /// Draws an instance to train on.
    pub fn training(
        &self,
        difficulty: Difficulty,
        base_seed: u64,
        augments: bool,
        rng: &mut TaskRng,
    ) -> Arc<dyn Problem> {
        let problem = self.instance(difficulty, base_seed, false, rng);
        if !augments {
            return problem;
        }

        // An instance derived from a training instance may be a held-out one.
        let other = augmented(self.task, Arc::clone(&problem), rng);
        if self.allows_in(false, other.as_ref()) { other } else { problem }
    }
}

/// Finds the tasks, and makes sure that each of them, except those in `benchmark_inputs`, has
/// enough inputs outside the benchmark at each of these levels and base seeds.
///
/// # Errors
/// If there is no task with a name, or the benchmark has nearly all inputs of one.
pub fn sources(
    names: &[String],
    benchmark_inputs: &[String],
    levels: &[Difficulty],
    base_seeds: [u64; 2],
) -> Result<Vec<Source>, TrainError> {
    for name in benchmark_inputs {
        tasks::find(name)
            .map_err(|error| TrainError::Recipe(format!("data.benchmark_inputs: {error}")))?;
    }

    let source = |name: &String| {
        let task = tasks::find(name)?;
        let meets_benchmark = benchmark_inputs.contains(name);

        for (level, base_seed) in
            levels.iter().flat_map(|level| base_seeds.map(|seed| (*level, seed)))
        {
            if !meets_benchmark {
                ensure_fresh(task, level, base_seed).map_err(|error| {
                    TrainError::Recipe(format!(
                        "data.tasks: {error}. Leave the task or the level out, or name the task in \
                         data.benchmark_inputs; what is trained has then seen inputs of the \
                         benchmark"
                    ))
                })?;
            }
        }
        let source = Source { task, meets_benchmark };
        levels.iter().try_for_each(|level| source.ensure_parts(*level, base_seeds))?;
        Ok(source)
    };
    names.iter().map(source).collect()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn data(task: &str, benchmark_inputs: &[&str]) -> Data {
        Data {
            tasks: vec![task.to_owned()],
            difficulty_mix: [1, 0, 0],
            benchmark_inputs: benchmark_inputs.iter().map(|name| (*name).to_owned()).collect(),
            ..Data::default()
        }
    }

    #[test]
    fn no_input_of_the_benchmark_is_trained_on() {
        // The benchmark has nearly half of all easy inputs.
        let states = States::new(&data("n-queens", &[])).expect("fresh inputs");
        let mut rng = TaskRng::new(5);
        for _ in 0..100 {
            assert!(!is_in_benchmark(states.instance(0, &mut rng).as_ref()));
            for held_out in [false, true] {
                let machine = states.draw(0, held_out, &mut rng);
                assert!(!is_in_benchmark(machine.problem().as_ref()));
            }
        }
    }

    /// Other seeds draw equal inputs, so that seeds alone do not keep the two apart.
    #[test]
    fn no_input_that_is_held_out_is_trained_on() {
        for (task, named) in [("n-queens", &[][..]), ("tower-of-hanoi", &["tower-of-hanoi"])] {
            for augmentation in [false, true] {
                let states = States::new(&Data { augmentation, ..data(task, named) });
                let states = states.expect("enough inputs");
                let mut rng = TaskRng::new(5);

                let mut inputs = |held_out: bool| -> BTreeSet<String> {
                    let mut input = || {
                        if held_out {
                            states.draw(0, true, &mut rng).problem().input().to_string()
                        } else {
                            states.instance(0, &mut rng).input().to_string()
                        }
                    };
                    (0..300).map(|_| input()).collect()
                };
                let (held_out, training) = (inputs(true), inputs(false));
                assert!(!held_out.is_empty() && training.len() > held_out.len(), "{task}");
                assert!(held_out.is_disjoint(&training), "{task}");
            }
        }
    }

    #[test]
    fn every_level_of_every_task_has_inputs_for_both_parts() {
        let names: Vec<String> = tasks::all().map(|task| task.spec().slug.to_owned()).collect();
        sources(&names, &names, &Difficulty::ALL, [1_000_000, 2_000_000]).expect("both parts");
    }

    #[test]
    fn a_task_that_the_benchmark_exhausts_must_be_named() {
        let refused = |benchmark_inputs: &[&str]| {
            States::new(&data("tower-of-hanoi", benchmark_inputs)).map(|_| ()).err()
        };
        let message = refused(&[]).expect("exhausted").to_string();
        assert!(
            message.contains("tower-of-hanoi, easy: 0 of 200")
                && message.contains("data.benchmark_inputs"),
            "{message}"
        );

        assert!(refused(&["tower-of-hanoi"]).is_none());
        assert!(refused(&["tower-of-hani"]).expect("unknown").to_string().contains("hanoi"));
    }
}
