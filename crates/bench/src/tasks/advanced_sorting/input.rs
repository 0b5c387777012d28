//! The input that all advanced sorts share: one array.

use serde::{Deserialize, Serialize};

use crate::tasks::page::Sizes;
use crate::tasks::spec::Difficulty;
use crate::tasks::task::InvalidInput;
use crate::tasks::{TaskRng, array};

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    pub a: Vec<i64>,
}

impl Instance {
    /// Draws arrays by `array` until one is not sorted already.
    pub fn unsorted(mut array: impl FnMut() -> Vec<i64>) -> Self {
        loop {
            let a = array();
            if !a.is_sorted() {
                return Self { a };
            }
        }
    }

    /// An array of uniform values that is not sorted already.
    pub fn uniform(n: &Sizes, difficulty: Difficulty, rng: &mut TaskRng) -> Self {
        Self::unsorted(|| {
            let n = n.draw(difficulty, rng);
            array::uniform(n, -1000, 1000, rng)
        })
    }

    pub fn validate(&self) -> Result<(), InvalidInput> {
        array::validate("a", &self.a)
    }

    /// Whether these values are the input in non-decreasing order.
    pub fn is_sorted_as(&self, values: &[i64]) -> bool {
        values.is_sorted() && array::is_permutation(values, &self.a)
    }
}
