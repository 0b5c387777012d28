//! The states at which trajectories of a run got stuck: later rounds do not repeat what was tried
//! there.
//!
//! A round learns only from the rounds before it. If its trajectories learned from each other, the
//! result would depend on the order in which they end.

use serde::{Deserialize, Serialize};

use super::rejection::StuckAt;
use super::trajectory::Trajectory;

/// Most states that a run remembers.
const STATES_MAX: usize = 64;

/// The states of a run at which trajectories got stuck.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StuckStates {
    all: Vec<StuckAt>,
    /// The states as earlier rounds left them.
    taught: Vec<StuckAt>,
}

impl StuckStates {
    /// Adds the state at which a trajectory got stuck. The deepest states are kept.
    #[cold]
    pub fn add(&mut self, stuck: StuckAt) {
        match self
            .all
            .iter_mut()
            .find(|known| known.depth == stuck.depth && known.state == stuck.state)
        {
            Some(known) => known.join(stuck),
            None => self.all.push(stuck),
        }

        if self.all.len() > STATES_MAX
            && let Some(shallowest) = (0..self.all.len()).min_by_key(|at| self.all[*at].depth)
        {
            self.all.remove(shallowest);
        }
    }

    /// Makes what is known so far available to the trajectories of the new round, and what an
    /// earlier run has taught.
    pub fn open_round(&mut self, learnt: &[StuckAt]) {
        self.taught.clone_from(&self.all);
        // Sorted, so that the order in which trajectories ended has no influence.
        for known in &mut self.taught {
            known.rejected.sort_unstable_by(|a, b| a.line.cmp(&b.line));
        }
        self.taught.extend_from_slice(learnt);
    }

    /// Excludes what was rejected in earlier rounds at the state that the trajectory has reached.
    #[inline]
    pub fn teach(&self, trajectory: &mut Trajectory) {
        if !self.taught.is_empty() {
            self.teach_all(trajectory);
        }
    }

    #[cold]
    fn teach_all(&self, trajectory: &mut Trajectory) {
        let depth = trajectory.stack.depth();
        let mut known = self.taught.iter().filter(|known| known.depth == depth).peekable();
        // The state is written out once, and only where something may be known of it.
        if known.peek().is_some() {
            let state = trajectory.machine.state();
            known.filter(|known| known.state == state).for_each(|known| trajectory.learn(known));
        }
    }

    /// Returns whether some state has stopped as many trajectories as a round has, at least two.
    pub fn has_stopped(&self, trajectories: u32) -> bool {
        self.all.iter().any(|stuck| stuck.trajectories >= trajectories.max(2))
    }

    /// The deepest of the states.
    pub fn deepest(&self) -> Option<&StuckAt> {
        self.all.iter().max_by_key(|stuck| stuck.depth)
    }
}
