//! How far a trajectory goes back when its end is refuted. Every step before it was found clean, so
//! the fault lies earlier. A locator may say where; if nobody knows, the distance doubles until the
//! first state is reached.

use serde::{Deserialize, Serialize};

/// How far a trajectory has gone back, and what a locator has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retreat {
    /// The state whose line would have ended the trace, but was refused.
    refuted_at: Option<usize>,
    /// States to leave at the next refuted end; 0 stands for one.
    distance: usize,
    /// The first state was reached: there is nothing left to go back to.
    is_complete: bool,
    /// The committed steps, from the first, that a locator has judged and found clean.
    #[serde(default)]
    clean: usize,
}

impl Retreat {
    /// Notes that a line that ends the trace was refused at the state of this depth.
    pub fn refuted(&mut self, depth: usize) {
        self.refuted_at = Some(depth);
    }

    /// The committed steps, from the first, that a locator need not judge again.
    pub fn clean(&self) -> usize {
        self.clean
    }

    /// Notes how many of the `depth` committed steps a locator has found clean.
    pub fn located(&mut self, clean: usize, depth: usize) {
        self.clean = clean.min(depth);
    }

    /// Forgets the refuted end: the fault that led to it is known.
    pub fn explained(&mut self) {
        self.refuted_at = None;
    }

    /// Forgets the steps above `depth`.
    #[inline]
    pub fn truncate(&mut self, depth: usize) {
        self.clean = self.clean.min(depth);
    }

    /// The states to leave beyond the one at `depth`; `None` if no end was refuted, or if there is
    /// nothing left to go back to.
    pub fn further(&mut self, depth: usize) -> Option<usize> {
        if self.refuted_at.take() != Some(depth) || self.is_complete {
            return None;
        }

        let distance = self.distance.max(1);
        self.distance = distance.saturating_mul(2);
        self.is_complete = distance >= depth;
        Some(distance.min(depth) - 1)
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
        let expected = [Some(0), Some(1), Some(3), Some(7), Some(15), Some(19), None];
        assert_eq!(left, expected);
    }

    #[test]
    fn an_end_that_is_explained_sends_nothing_back() {
        let mut retreat = Retreat::default();
        retreat.refuted(7);
        retreat.explained();
        assert_eq!(retreat.further(7), None);
    }

    #[test]
    fn what_a_locator_has_judged_goes_with_its_steps() {
        let mut retreat = Retreat::default();
        retreat.located(9, 7);
        assert_eq!(retreat.clean(), 7, "there are no more steps");
        retreat.truncate(8);
        assert_eq!(retreat.clean(), 7);
        retreat.truncate(3);
        assert_eq!(retreat.clean(), 3);
    }

    #[test]
    fn only_the_state_at_the_end_sends_the_search_back() {
        let mut retreat = Retreat { distance: 4, ..Retreat::default() };
        assert_eq!(retreat.further(5), None, "nothing was refuted");
        retreat.refuted(6);
        assert_eq!(retreat.further(5), None, "another state");
    }
}
