//! A load as data: what is asked for, whatever it goes through.

use std::time::Duration;

use super::error::LoadError;
use super::report::{Length, Load};
use prime_protocol::Role;

/// Most trajectories of a load.
pub const TRAJECTORIES_MAX: u32 = 100_000;
/// The counts of a sweep.
pub const SWEEP: [u32; 5] = [1, 10, 100, 1_000, 10_000];
/// Most steps a second that can be asked for.
pub const RATE_MAX: f64 = 10_000_000.0;
/// Longest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

/// Bytes that the committed lines of all trajectories may take, about: a trajectory that has its part ends, and another
/// takes its place.
const LINES_BYTES: u64 = 256 << 20;
/// Bytes of a committed step beside its line, about.
const STEP_BYTES: u64 = 16;
/// Steps of one run at most.
const RUN_STEPS_MAX: u64 = 1_000_000;
/// Bytes of lines that cannot be avoided (two a trajectory), beyond which a load is refused.
const UNAVOIDABLE_BYTES_MAX: u64 = 4 << 30;

/// What is asked of each count of trajectories.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How long is measured.
    pub length: Length,
    /// Not measured, before that.
    pub warmup: Duration,
    /// Steps a second that are due, over all trajectories; `None` is a closed loop.
    pub rate: Option<f64>,
    /// Time the parts of each step's way.
    pub has_legs: bool,
    /// Bytes of each proposal's line (of the prompt, where engines are asked) beyond the shortest.
    pub payload_bytes: usize,
    pub flaws: Flaws,
}

/// What is wrong with some of the agents, on purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaws {
    /// Time that each turn waits.
    pub delay: Duration,
    /// Share of the turns that fail once and are then tried again, 0 to 1.
    pub failures: f64,
    /// The agents that are so.
    pub faulty: Vec<Role>,
}

impl Flaws {
    pub const NONE: Self = Self { delay: Duration::ZERO, failures: 0.0, faulty: Vec::new() };

    /// Whether this agent has any.
    pub fn concern(&self, role: Role) -> bool {
        self.faulty.contains(&role) && (self.failures > 0.0 || !self.delay.is_zero())
    }
}

impl Plan {
    /// A closed loop without a warm-up: so many steps of each trajectory.
    pub fn steps(steps: u64) -> Self {
        Self {
            length: Length::Steps(steps),
            warmup: Duration::ZERO,
            rate: None,
            has_legs: false,
            payload_bytes: 0,
            flaws: Flaws::NONE,
        }
    }

    /// As it stands in a report.
    pub fn load(&self, durable: bool) -> Load {
        let concerned = Role::ALL.into_iter().filter(|role| self.flaws.concern(*role));
        Load {
            rate: self.rate,
            warmup_seconds: self.warmup.as_secs_f64(),
            length: self.length,
            payload_bytes: self.payload_bytes,
            delay_us: u64::try_from(self.flaws.delay.as_micros()).unwrap_or(u64::MAX),
            failures: self.flaws.failures,
            faulty: concerned.map(|role| role.to_string()).collect(),
            durable,
        }
    }

    /// Steps of one run of each of so many trajectories: its committed steps stay in memory, so that a long test needs
    /// several.
    ///
    /// # Errors
    /// When even the shortest runs would not fit.
    pub fn run_steps(&self, trajectories: u32) -> Result<u64, LoadError> {
        let step = self.payload_bytes as u64 + STEP_BYTES;
        let all = step * u64::from(trajectories.max(1));
        if 2 * all > UNAVOIDABLE_BYTES_MAX {
            let payload_bytes = self.payload_bytes;
            return Err(LoadError::TooLarge { trajectories, payload_bytes, bytes: 2 * all });
        }
        Ok((LINES_BYTES / all).clamp(2, RUN_STEPS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_their_lines_may_be() {
        let with = |payload_bytes| Plan { payload_bytes, ..Plan::steps(1) };
        // 2^28 bytes over the trajectories, 16 bytes and the payload a step.
        for (payload, trajectories, steps) in
            [(0, 1, 1_000_000), (0, 1_000, 16_777), (0, 10_000, 1_677), (1_008, 1_024, 256), (1_048_560, 1_000, 2)]
        {
            assert_eq!(with(payload).run_steps(trajectories).unwrap(), steps, "{payload} {trajectories}");
        }
        let refused = with(1 << 20).run_steps(100_000).unwrap_err().to_string();
        for part in ["100000 trajectories", "1048576 bytes", "MiB", "lower one"] {
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn only_agents_that_are_flawed_are_named() {
        let flaws = Flaws { delay: Duration::from_micros(200), failures: 0.0, faulty: vec![Role::Verifier] };
        assert!(flaws.concern(Role::Verifier) && !flaws.concern(Role::Executor));
        let plan = Plan { flaws, ..Plan::steps(7) };
        let load = plan.load(true);
        assert_eq!((load.delay_us, load.faulty.as_slice()), (200, &["verifier".to_owned()][..]));
        assert_eq!((load.length, load.rate, load.durable), (Length::Steps(7), None, true));
        let none = Plan { flaws: Flaws { faulty: vec![Role::Executor], ..Flaws::NONE }, ..Plan::steps(1) };
        assert!(none.load(false).faulty.is_empty());
    }
}
