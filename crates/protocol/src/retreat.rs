//! How far a trajectory goes back when its end is refuted. Every step before it was found clean, so
//! the fault lies earlier, and nobody knows where: the distance doubles until the first state is
//! reached.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retreat {
    /// The state whose line would have ended the trace, but was refused.
    refuted_at: Option<usize>,
    /// States to leave at the next refuted end; 0 stands for one.
    distance: usize,
    /// The first state was reached: there is nothing left to go back to.
    is_complete: bool,
}

impl Retreat {
    /// Notes that a line that ends the trace was refused at the state of this depth.
    pub fn refuted(&mut self, depth: usize) {
        self.refuted_at = Some(depth);
    }

    /// The states to leave beyond the one at `depth`, which has used up its attempts; 0 where it was
    /// no end that was refuted.
    pub fn further(&mut self, depth: usize) -> usize {
        if self.is_complete || self.refuted_at.take() != Some(depth) {
            return 0;
        }

        let distance = self.distance.max(1);
        self.distance = distance.saturating_mul(2);
        self.is_complete = distance >= depth;
        distance.min(depth) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_doubles_until_the_first_state() {
        let mut retreat = Retreat::default();
        let mut left = Vec::new();
        for _ in 0..7 {
            retreat.refuted(20);
            left.push(retreat.further(20));
        }
        assert_eq!(left, [0, 1, 3, 7, 15, 19, 0]);
    }

    #[test]
    fn only_the_state_at_the_end_sends_the_search_back() {
        let mut retreat = Retreat { distance: 4, ..Retreat::default() };
        assert_eq!(retreat.further(5), 0, "nothing was refuted");
        retreat.refuted(6);
        assert_eq!(retreat.further(5), 0, "another state");
    }
}
