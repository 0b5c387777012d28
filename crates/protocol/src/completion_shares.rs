//! Shares of the completion tokens that a run has left, so that all turns in flight together stay
//! within the budget.

use super::trajectory::Trajectory;
use super::turn::TurnId;

#[derive(Default)]
pub(super) struct CompletionShares {
    /// Tokens that the turns in flight may still write.
    allotted: u64,
    /// Turns that wait for a share.
    parked: Vec<(TurnId, Box<Trajectory>)>,
}

impl CompletionShares {
    /// Restores the shares of a snapshot, which stores no parked turn.
    pub(super) fn restore(allotted: u64) -> Self {
        Self { allotted, parked: Vec::new() }
    }

    pub(super) fn allotted(&self) -> u64 {
        self.allotted
    }

    /// Gives a trajectory an equal share of the `left` tokens for its next turn, and returns it.
    /// Parks it if the other turns in flight may write them all.
    pub(super) fn allot(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        left: u64,
        slots: u32,
    ) -> Option<Box<Trajectory>> {
        // At least one token, so that a small rest is used up, but never what other turns may still
        // write.
        let share = (left / u64::from(slots)).max(1).min(left.saturating_sub(self.allotted));

        if share == 0 {
            self.parked.push((id, trajectory));
            return None;
        }
        self.allotted += share;
        trajectory.completion_max = Some(u32::try_from(share).unwrap_or(u32::MAX));
        Some(trajectory)
    }

    /// Takes back the share of a turn that has ended.
    #[inline]
    pub(super) fn release(&mut self, trajectory: &mut Trajectory) {
        if let Some(share) = trajectory.completion_max.take() {
            self.allotted -= u64::from(share);
        }
    }

    #[inline]
    pub(super) fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    pub(super) fn parked(&self) -> u32 {
        u32::try_from(self.parked.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn take_parked(&mut self) -> Vec<(TurnId, Box<Trajectory>)> {
        std::mem::take(&mut self.parked)
    }
}
