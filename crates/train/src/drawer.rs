//! Draws pools of batches in advance, on threads of its own: a GPU learns faster than one processor
//! core draws.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::TrainError;
use super::batch::Batch;
use super::corrections::Corrections;
use super::pool::{PoolPlan, pool};
use super::samples::Samples;

/// Everything that a pool depends on.
pub struct Pool {
    pub seed: u64,
    /// Number of the pool in the training; selects its random stream.
    pub number: u64,
    /// Sampling weight of each task.
    pub mix: Vec<f64>,
    pub corrections: Arc<Corrections>,
    pub plan: PoolPlan,
}

impl Pool {
    fn draw(&self, samples: &mut dyn Samples) -> Drawn {
        draw(samples, [self.seed, self.number], &self.mix, &self.corrections, self.plan)
    }
}

/// A pool's batches, by step.
pub type Drawn = Result<Vec<Vec<Batch>>, TrainError>;

/// Draws the pool of this seed and number.
pub fn draw(
    samples: &mut dyn Samples,
    [seed, number]: [u64; 2],
    mix: &[f64],
    corrections: &Corrections,
    plan: PoolPlan,
) -> Drawn {
    // Stream 0 of the seed is that of the initial weights.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number + 1);
    pool(samples, corrections, mix, plan, &mut rng)
}

/// Threads that draw pools in turn: pool n is drawn by thread n modulo their number.
pub struct Drawer {
    threads: Vec<(Sender<Pool>, Receiver<Drawn>)>,
    /// The first pool that has not been requested yet.
    next: Option<u64>,
}

impl Drawer {
    /// Starts the threads; `None` if `threads` is 0.
    ///
    /// # Errors
    /// If the samples can be drawn on one thread only.
    pub fn new(samples: &dyn Samples, threads: usize) -> Result<Option<Self>, TrainError> {
        let thread = |_| {
            let mut samples = samples.fork()?;
            // At most two pools of a thread are outstanding, so that sending never waits.
            let (ask, asked) = bounded::<Pool>(2);
            let (give, given) = bounded(2);

            thread::spawn(move || {
                for pool in asked {
                    // The drawer was dropped.
                    if give.send(pool.draw(samples.as_mut())).is_err() {
                        break;
                    }
                }
            });

            Some((ask, given))
        };

        let refused = || {
            TrainError::Recipe(
                "batch.drawers: a verifier's samples are drawn on one thread, leave it out"
                    .to_owned(),
            )
        };

        let threads: Vec<_> =
            (0..threads).map(thread).collect::<Option<_>>().ok_or_else(refused)?;

        Ok((!threads.is_empty()).then_some(Self { threads, next: None }))
    }

    /// Returns the pool of this number, which must follow the last one, and requests the next ones.
    pub fn draw(&mut self, number: u64, mut pool: impl FnMut(u64) -> Pool) -> Drawn {
        let count = self.threads.len() as u64;
        for number in self.next.unwrap_or(number)..=number + count {
            let (ask, _) = &self.threads[(number % count) as usize];
            ask.send(pool(number)).expect("invariant: a thread draws as long as it is asked");
        }

        self.next = Some(number + count + 1);
        // Threads draw concurrently, but pools are received in the order of their numbers.
        self.threads[(number % count) as usize]
            .1
            .recv()
            .expect("invariant: a thread answers what it is asked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Toy;

    #[test]
    fn pools_drawn_ahead_are_those_drawn_in_turn() {
        let corrections = Arc::new(Corrections::new(2));
        let plan =
            PoolPlan { steps: 2, passes: 1, tokens: 64, context: 16, corrected: 0.0, sorts: false };
        let pool = |number| Pool {
            seed: 5,
            number,
            mix: vec![1.0, 2.0],
            corrections: Arc::clone(&corrections),
            plan,
        };

        // A resumed training begins with another pool than the first.
        for begin in [0, 4] {
            let mut drawer =
                Drawer::new(&Toy::new(), 3).expect("samples for several threads").expect("threads");
            for number in begin..begin + 8 {
                let ahead = drawer.draw(number, pool).expect("a pool");
                let in_turn = pool(number).draw(&mut Toy::new()).expect("a pool");
                let inputs = |pool: &[Vec<Batch>]| -> Vec<Vec<u16>> {
                    pool.iter().flatten().map(|batch| batch.inputs.clone()).collect()
                };
                assert_eq!(inputs(&ahead), inputs(&in_turn), "pool {number}");
            }
        }
        assert!(Drawer::new(&Toy::new(), 0).expect("no threads").is_none());
    }
}
