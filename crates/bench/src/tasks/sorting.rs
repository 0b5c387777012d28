//! The common part of the sorts of one array of integers: their input, its distribution, and the
//! frame of their tasks.

use serde::{Deserialize, Serialize};

use super::array;
use super::page::Sizes;
use super::rng::TaskRng;
use super::spec::Difficulty;
use super::task::{Illegal, InvalidInput, Task, reference_steps};

/// The array to sort.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The elements, in their order before the sort.
    pub a: Vec<i64>,
}

impl Input {
    /// Takes arrays from `draw` until one is not already sorted.
    pub fn unsorted(mut draw: impl FnMut() -> Vec<i64>) -> Self {
        loop {
            let a = draw();
            if !a.is_sorted() {
                return Self { a };
            }
        }
    }

    /// An array of uniform values that is not already sorted.
    pub fn uniform(sizes: &Sizes, difficulty: Difficulty, rng: &mut TaskRng) -> Self {
        Self::unsorted(|| {
            let n = sizes.draw(difficulty, rng);
            array::uniform(n, -1000, 1000, rng)
        })
    }

    /// Draws [uniform](Self::uniform) arrays until `accepts` takes one.
    pub fn draw(
        sizes: &Sizes,
        difficulty: Difficulty,
        rng: &mut TaskRng,
        accepts: impl Fn(&Self) -> bool,
    ) -> Self {
        loop {
            let input = Self::uniform(sizes, difficulty, rng);
            if accepts(&input) {
                return input;
            }
        }
    }

    /// An array whose reference trace has at least n·n/4 steps, as most pages ask.
    pub fn laborious<T: Task<Instance = Self>>(
        sizes: &Sizes,
        difficulty: Difficulty,
        rng: &mut TaskRng,
    ) -> Self {
        Self::draw(sizes, difficulty, rng, Self::is_laborious_for::<T>)
    }

    /// Returns whether the task's algorithm takes at least n²/4 steps on the array.
    pub fn is_laborious_for<T: Task<Instance = Self>>(&self) -> bool {
        reference_steps::<T>(self, u64::MAX)
            .is_some_and(|steps| 4 * steps >= self.len() * self.len())
    }

    /// # Errors
    /// See `array::validate`.
    pub fn validate(&self) -> Result<(), InvalidInput> {
        array::validate("a", &self.a)
    }

    pub(crate) fn len(&self) -> u64 {
        self.a.len() as u64
    }

    /// Pairs of places: the most inversions that an array of this length can have.
    pub fn pairs(&self) -> u64 {
        self.len() * (self.len() - 1) / 2
    }

    /// The pairs that the first `passes` passes compare when the first has n-1 of them and each
    /// other one fewer.
    pub fn pairs_of_passes(&self, passes: u64) -> u64 {
        let passes = passes.min(self.len() - 1);
        passes * (self.len() - 1) - passes * passes.saturating_sub(1) / 2
    }

    /// Returns whether these values are the input in non-decreasing order.
    pub fn is_sorted_as(&self, values: &[i64]) -> bool {
        values.is_sorted() && array::is_permutation(values, &self.a)
    }
}

/// # Errors
/// When the array lacks one of the places.
pub fn require_places(a: &[i64], i: usize, j: usize) -> Result<(), Illegal> {
    if i < a.len() && j < a.len() {
        Ok(())
    } else {
        Err(Illegal("there is no such place in the array"))
    }
}

/// `task_items!` and `validate` of a sort that accepts every [`Input`].
macro_rules! sort_items {
    ($page:expr) => {
        task_items!(Input, State, Action, $page);

        fn validate(input: &Input) -> Result<(), InvalidInput> {
            input.validate()
        }
    };
}

pub(crate) use sort_items;
