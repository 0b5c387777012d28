//! How long the parts of a turn's way take, where somebody wants to know.

use std::time::Duration;

use tokio::time::Instant;

use prime_protocol::Role;

/// A part of the way that a turn goes from its proposal's request to its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On its way to an agent, and in its mailbox.
    To(Role),
    /// In the agent's hands.
    Work(Role),
    /// On its way back to the Supervisor, and in its mailbox.
    Home,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them, in their order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::To(Role::Executor),
        Self::Work(Role::Executor),
        Self::To(Role::Verifier),
        Self::Work(Role::Verifier),
        Self::To(Role::Coordinator),
        Self::Work(Role::Coordinator),
        Self::Home,
    ];

    fn index(self) -> usize {
        match self {
            Self::To(role) => 2 * role as usize,
            Self::Work(role) => 2 * role as usize + 1,
            Self::Home => Self::COUNT - 1,
        }
    }

    pub fn name(self) -> &'static str {
        ["to executor", "execute", "to verifier", "verify", "to coordinator", "coordinate", "to supervisor"]
            [self.index()]
    }

    /// Whether it is an agent's own time.
    pub fn is_work(self) -> bool {
        matches!(self, Self::Work(_))
    }
}

/// The times of one turn's legs; a leg that is gone twice, because the turn was lost, counts both.
#[derive(Clone, Debug)]
pub struct StageTimes {
    last: Instant,
    times: [Duration; Stage::COUNT],
}

impl StageTimes {
    /// The turn sets out.
    pub fn start() -> Self {
        Self { last: Instant::now(), times: [Duration::ZERO; Stage::COUNT] }
    }

    /// The end of a leg.
    pub fn end(&mut self, leg: Stage) {
        let now = Instant::now();
        self.times[leg.index()] += now.duration_since(self.last);
        self.last = now;
    }

    pub fn of(&self, leg: Stage) -> Duration {
        self.times[leg.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legs_stand_in_the_order_of_their_way() {
        assert_eq!(Stage::ALL.map(Stage::index), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Stage::ALL.map(Stage::is_work), [false, true, false, true, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_leg_that_is_gone_twice_counts_both() {
        let mut laps = StageTimes::start();
        let wait = |ms| tokio::time::advance(Duration::from_millis(ms));
        wait(3).await;
        laps.end(Stage::To(Role::Executor));
        wait(5).await;
        laps.end(Stage::Work(Role::Executor));
        wait(7).await;
        laps.end(Stage::To(Role::Executor));
        let times =
            [Stage::To(Role::Executor), Stage::Work(Role::Executor), Stage::Home].map(|leg| laps.of(leg).as_millis());
        assert_eq!(times, [10, 5, 0]);
    }
}
