//! The input of the comparison sorts, and how most of them draw it.

use serde::{Deserialize, Serialize};

use crate::tasks::page::Sizes;
use crate::tasks::spec::Difficulty;
use crate::tasks::task::{Illegal, InvalidInput, Task, reference_steps};
use crate::tasks::{TaskRng, array};

/// The array to sort.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub a: Vec<i64>,
}

impl Input {
    /// Draws arrays of uniform values until one is not sorted already and `accepts` takes it.
    pub fn draw(sizes: &Sizes, difficulty: Difficulty, rng: &mut TaskRng, accepts: impl Fn(&Self) -> bool) -> Self {
        loop {
            let n = sizes.draw(difficulty, rng);
            let input = Self { a: array::uniform(n, -1000, 1000, rng) };
            if !input.a.is_sorted() && accepts(&input) {
                return input;
            }
        }
    }

    /// # Errors
    /// See [`array::validate`].
    pub fn validate(&self) -> Result<(), InvalidInput> {
        array::validate("a", &self.a)
    }

    pub fn len(&self) -> u64 {
        self.a.len() as u64
    }

    /// Pairs of places: the most inversions that an array of this length can have.
    pub fn pairs(&self) -> u64 {
        self.len() * (self.len() - 1) / 2
    }
}

/// Whether the reference trace has at least n·n/4 steps, as most pages ask.
pub fn has_a_quarter_square_of_steps<T: Task<Instance = Input>>(input: &Input) -> bool {
    reference_steps::<T>(input, u64::MAX).is_some_and(|steps| 4 * steps >= input.len() * input.len())
}

/// # Errors
/// When the array lacks one of the places.
pub fn require_places(a: &[i64], i: usize, j: usize) -> Result<(), Illegal> {
    if i < a.len() && j < a.len() { Ok(()) } else { Err(Illegal("there is no such place in the array")) }
}
