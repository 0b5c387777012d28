//! Training samples for an executor: the next step of a reference trace. Knows states and prompts, but no models.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::states::States;
use super::{Data, Sample, Samples};
use prime_bench::tasks::{TaskRng, UnknownTask};

/// Draws steps from the reference traces of some tasks.
pub struct Traces(States);

impl Traces {
    /// # Errors
    /// If there is no task of a name.
    pub fn new(data: &Data) -> Result<Self, UnknownTask> {
        States::new(data).map(Self)
    }
}

impl Samples for Traces {
    fn tasks(&self) -> &[String] {
        self.0.names()
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let machine = self.0.draw(task, held_out, &mut TaskRng::new(rng.next_u64()));
        let completion = prime_lessons::completion(machine.as_ref()).expect("invariant: the state has a next step");
        Sample { task, prompt: prime_lessons::compact(machine.as_ref()), completion }
    }
}
