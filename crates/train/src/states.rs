//! Draws states of reference traces by task, difficulty and split (training or held out). Knows no
//! prompts.

use super::{Data, TrainError};
use std::sync::Arc;

use prime_bench::augmentation::augmented;
use prime_bench::tasks::inputs::{ensure_fresh, is_in_benchmark};
use prime_bench::tasks::sampling::{fresh_instance, instance, state_on_trace_of};
use prime_bench::tasks::{self, AnyTask, Difficulty, Machine, Problem, TaskRng};

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

    /// Draws a state of this task that has a next step; `held_out` draws from instances under other
    /// seeds than those that are trained on.
    pub fn draw(&self, task: usize, held_out: bool, rng: &mut TaskRng) -> Box<dyn Machine> {
        let base_seed =
            if held_out { self.data.held_out_base_seed } else { self.data.training_base_seed };
        let difficulty = difficulty_of(self.data.difficulty_mix, rng);

        let problem = self.tasks[task].instance(difficulty, base_seed, rng);
        state_on_trace_of(problem.as_ref(), rng)
    }
}

/// A task that instances are drawn of.
#[derive(Clone, Copy)]
pub struct Source {
    pub task: &'static dyn AnyTask,
    /// Whether inputs that the benchmark has may be drawn.
    meets_benchmark: bool,
}

impl Source {
    /// Whether the recipe allows this instance.
    pub fn allows(&self, problem: &dyn Problem) -> bool {
        self.meets_benchmark || !is_in_benchmark(problem)
    }

    fn instance(
        &self,
        difficulty: Difficulty,
        base_seed: u64,
        rng: &mut TaskRng,
    ) -> Arc<dyn Problem> {
        let draw = if self.meets_benchmark { instance } else { fresh_instance };
        draw(self.task, difficulty, base_seed, rng)
    }

    /// Draws an instance to train on.
    pub fn training(
        &self,
        difficulty: Difficulty,
        base_seed: u64,
        augments: bool,
        rng: &mut TaskRng,
    ) -> Arc<dyn Problem> {
        let problem = self.instance(difficulty, base_seed, rng);
        if !augments {
            return problem;
        }

        // What was made from an instance that the benchmark has not may be one that it has.
        let other = augmented(self.task, Arc::clone(&problem), rng);
        if self.allows(other.as_ref()) { other } else { problem }
    }
}

/// Finds the tasks, and makes sure that there are enough inputs that the benchmark has not, at each
/// of these levels and base seeds, of all tasks but those in `benchmark_inputs`.
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
        Ok(Source { task, meets_benchmark })
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
