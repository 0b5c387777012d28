//! Supervised steps from the reference traces of tasks. Knows tasks and prompts; nothing of models.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::{Data, Sample, Samples};
use crate::agents::prompt;
use crate::tasks::sampling::state_on_trace;
use crate::tasks::{self, AnyTask, Difficulty, Draw, UnknownTask};

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

impl Samples for Traces {
    fn tasks(&self) -> &[String] {
        &self.names
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let mut draw = Draw::new(rng.next_u64());
        let base_seed = if held_out { self.data.held_out_base_seed } else { self.data.training_base_seed };
        let difficulty = difficulty_of(self.data.difficulty_mix, &mut draw);
        let machine = state_on_trace(self.tasks[task], difficulty, base_seed, &mut draw);
        let completion = prompt::completion(machine.as_ref()).expect("invariant: the state has a next step");
        Sample { task, prompt: prompt::compact(machine.as_ref()), completion }
    }
}
