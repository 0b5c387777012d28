//! Durations of a turn's stages, measured if its run's observer wants them.

use std::time::Duration;

use tokio::time::Instant;

use prime_protocol::Role;

/// A part of a turn's way, from the request for its proposal to the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On the way to an agent, its mailbox included.
    To(Role),
    /// With the agent.
    Work(Role),
    /// On the way back to the Supervisor, its mailbox included.
    Home,
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = 7;
    /// In the order of a turn.
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

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        [
            "to executor",
            "execute",
            "to verifier",
            "verify",
            "to coordinator",
            "coordinate",
            "to supervisor",
        ][self.index()]
    }

    /// True if an agent spends the time.
    pub fn is_work(self) -> bool {
        matches!(self, Self::Work(_))
    }
}

/// The duration of each stage of one turn. A stage that is repeated after the turn was lost
/// accumulates.
#[derive(Clone, Debug)]
pub struct StageTimes {
    last: Instant,
    times: [Duration; Stage::COUNT],
}

impl StageTimes {
    /// Starts the first stage now.
    pub fn start() -> Self {
        Self { last: Instant::now(), times: [Duration::ZERO; Stage::COUNT] }
    }

    /// Ends a stage; the next one starts.
    pub fn end(&mut self, stage: Stage) {
        let now = Instant::now();
        self.times[stage.index()] += now.duration_since(self.last);
        self.last = now;
    }

    /// The duration of a stage; zero if it has not ended.
    pub fn of(&self, stage: Stage) -> Duration {
        self.times[stage.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_listed_in_the_order_of_a_turn() {
        assert_eq!(Stage::ALL.map(Stage::index), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Stage::ALL.map(Stage::is_work), [false, true, false, true, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_stage_accumulates() {
        let mut timing = StageTimes::start();
        let wait = |ms| tokio::time::advance(Duration::from_millis(ms));

        wait(3).await;
        timing.end(Stage::To(Role::Executor));
        wait(5).await;
        timing.end(Stage::Work(Role::Executor));
        wait(7).await;
        timing.end(Stage::To(Role::Executor));

        let times = [Stage::To(Role::Executor), Stage::Work(Role::Executor), Stage::Home]
            .map(|stage| timing.of(stage).as_millis());
        assert_eq!(times, [10, 5, 0]);
    }
}
