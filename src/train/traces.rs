//! Supervised steps from the reference traces of tasks. Knows tasks and prompts; nothing of models.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::{Data, Sample, Samples};
use crate::agents::prompt;
use crate::tasks::{self, AnyTask, Difficulty, Draw, Machine, UnknownTask};

/// How far into a trace a sample lies at most, where the task cannot jump.
const WALK_MAX: u64 = 600;

/// Base seeds that each side of the data draws from: consecutive ones, a thousand instances each.
const BASE_SEEDS: u64 = 1_000;
const INDICES: u64 = 1_000;

/// Draws steps from the reference traces of some tasks.
pub struct Traces {
    names: Vec<String>,
    tasks: Vec<&'static dyn AnyTask>,
    data: Data,
}

impl Traces {
    /// # Errors
    /// When a name is no task's.
    pub fn new(data: &Data) -> Result<Self, UnknownTask> {
        let tasks = data.tasks.iter().map(|name| tasks::find(name)).collect::<Result<_, _>>()?;
        Ok(Self { names: data.tasks.clone(), tasks, data: data.clone() })
    }
}

fn difficulty_of(mix: [u64; 3], draw: &mut Draw) -> Difficulty {
    let mut left = draw.below(mix.iter().sum());
    for (difficulty, share) in Difficulty::ALL.into_iter().zip(mix) {
        if left < share {
            return difficulty;
        }
        left -= share;
    }
    Difficulty::Hard
}

/// A random state with a next step, of a random instance's trace.
fn state_of(task: &dyn AnyTask, difficulty: Difficulty, base_seed: u64, draw: &mut Draw) -> Box<dyn Machine> {
    let index = u32::try_from(draw.below(INDICES)).expect("invariant: below 1,000");
    let seed = task.spec().seed(base_seed + draw.below(BASE_SEEDS), difficulty, index);
    let problem = task.generate(difficulty, seed);
    if let Some(machine) = problem.on_path(draw) {
        return machine;
    }
    let wanted = draw.below(WALK_MAX);
    let mut machine = problem.start();
    let mut trace = 0;
    while trace < wanted && machine.reference().is_some() {
        machine.follow_reference();
        trace += 1;
    }
    if machine.reference().is_none() {
        // The trace is shorter: any of its steps.
        machine = problem.start();
        for _ in 0..draw.below(trace) {
            machine.follow_reference();
        }
    }
    machine
}

impl Samples for Traces {
    fn tasks(&self) -> &[String] {
        &self.names
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let mut draw = Draw::new(rng.next_u64());
        let base_seed = if held_out { self.data.held_out_base_seed } else { self.data.training_base_seed };
        let difficulty = difficulty_of(self.data.difficulty_mix, &mut draw);
        let machine = state_of(self.tasks[task], difficulty, base_seed, &mut draw);
        let completion = prompt::completion(machine.as_ref()).expect("invariant: the state has a next step");
        Sample { task, prompt: prompt::compact(machine.as_ref()), completion }
    }
}
