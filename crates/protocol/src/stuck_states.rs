//! The states at which trajectories of a run got stuck: later ones do not repeat what was tried there.

use super::rejection::StuckAt;
use super::trajectory::Trajectory;

/// States that a run remembers.
const STATES_MAX: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct StuckStates(Vec<StuckAt>);

impl StuckStates {
    pub fn of(states: Vec<StuckAt>) -> Self {
        Self(states)
    }

    pub fn save(&self) -> Vec<StuckAt> {
        self.0.clone()
    }

    /// Adds the state at which a trajectory got stuck. The deepest states are kept.
    #[cold]
    pub fn add(&mut self, stuck: StuckAt) {
        match self.0.iter_mut().find(|known| known.depth == stuck.depth && known.state == stuck.state) {
            Some(known) => known.join(stuck),
            None => self.0.push(stuck),
        }
        if self.0.len() > STATES_MAX
            && let Some(shallowest) = (0..self.0.len()).min_by_key(|at| self.0[*at].depth)
        {
            self.0.remove(shallowest);
        }
    }

    /// Excludes what was rejected before at the state that the trajectory has reached.
    #[inline]
    pub fn teach(&self, trajectory: &mut Trajectory) {
        if !self.0.is_empty() {
            self.teach_all(trajectory);
        }
    }

    #[cold]
    fn teach_all(&self, trajectory: &mut Trajectory) {
        for known in &self.0 {
            trajectory.learn(known);
        }
    }

    /// Whether some state has stopped as many trajectories as a round has, at least two.
    pub fn has_stopped(&self, trajectories: u32) -> bool {
        self.0.iter().any(|stuck| stuck.trajectories >= trajectories.max(2))
    }

    pub fn deepest(&self) -> Option<&StuckAt> {
        self.0.iter().max_by_key(|stuck| stuck.depth)
    }
}
