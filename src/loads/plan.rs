//! The requested load, independent of the mode.

use std::time::Duration;

use super::error::LoadError;
use super::watch::stage_kinds;
use prime_loadtest::Measurement;
use prime_loadtest::report::{Length, Load};
use prime_protocol::Role;

/// Most concurrent trajectories.
pub const TRAJECTORIES_MAX: u32 = 100_000;
/// The counts of `--sweep`.
pub const SWEEP: [u32; 5] = [1, 10, 100, 1_000, 10_000];
/// Steps per second.
pub const RATE_MAX: f64 = 10_000_000.0;
/// Most bytes added to a proposal's line.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

/// Approximate memory for the committed lines of all trajectories. A run ends when it has used its
/// part, and another one takes its place.
const LINES_BYTES: u64 = 256 << 20;
/// Approximate size of a committed step beside its line.
const STEP_BYTES: u64 = 16;
const RUN_STEPS_MAX: u64 = 1_000_000;
/// Limit on the unavoidable memory for lines, two per trajectory; a load that needs more is
/// refused.
const UNAVOIDABLE_BYTES_MAX: u64 = 4 << 30;

/// The load at each count of trajectories.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How long to measure.
    pub length: Length,
    /// Time before the measurement, which is not counted.
    pub warmup: Duration,
    /// Steps due per second over all trajectories; `None` is a closed loop.
    pub rate: Option<f64>,
    /// Time the stages of each step.
    pub has_stages: bool,
    /// Bytes added to each proposal's line (to the prompt, in mode `engine`).
    pub payload_bytes: usize,
    /// Faults to inject.
    pub faults: Faults,
}

/// Injected faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Added to each turn.
    pub delay: Duration,
    /// Share of the turns that fail once and are then retried, 0 to 1.
    pub failures: f64,
    /// The affected agents.
    pub faulty: Vec<Role>,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self { delay: Duration::ZERO, failures: 0.0, faulty: Vec::new() };

    /// True if faults are injected into agents of this role.
    pub fn affect(&self, role: Role) -> bool {
        self.faulty.contains(&role) && (self.failures > 0.0 || !self.delay.is_zero())
    }
}

impl Plan {
    /// A closed loop without warm-up, with a number of steps per trajectory.
    pub fn steps(steps: u64) -> Self {
        Self {
            length: Length::Steps(steps),
            warmup: Duration::ZERO,
            rate: None,
            has_stages: false,
            payload_bytes: 0,
            faults: Faults::NONE,
        }
    }

    /// The load as a report describes it.
    pub fn load(&self, durable: bool) -> Load {
        let affected = Role::ALL.into_iter().filter(|role| self.faults.affect(*role));

        Load {
            rate: self.rate,
            warmup_seconds: self.warmup.as_secs_f64(),
            length: self.length,
            payload_bytes: self.payload_bytes,
            delay_us: u64::try_from(self.faults.delay.as_micros()).unwrap_or(u64::MAX),
            failures: self.faults.failures,
            faulty: affected.map(|role| role.to_string()).collect(),
            durable,
        }
    }

    /// What to measure at a count of trajectories.
    pub fn measurement(&self, trajectories: u32) -> Measurement {
        Measurement {
            trajectories,
            length: self.length,
            warmup: self.warmup,
            rate: self.rate,
            stages: if self.has_stages { stage_kinds(self.rate.is_some()) } else { Vec::new() },
        }
    }

    /// Steps of one run of each trajectory. Committed steps stay in memory, so a long test needs
    /// several runs.
    ///
    /// # Errors
    /// If even the shortest runs would not fit.
    pub fn run_steps(&self, trajectories: u32) -> Result<u64, LoadError> {
        let step = self.payload_bytes as u64 + STEP_BYTES;

        let all = step * u64::from(trajectories.max(1));
        // A run has at least two steps.
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
    fn runs_are_as_long_as_memory_allows() {
        let with = |payload_bytes| Plan { payload_bytes, ..Plan::steps(1) };

        // 2^28 bytes over the trajectories, with 16 bytes and the payload per step.
        for (payload, trajectories, steps) in [
            (0, 1, 1_000_000),
            (0, 1_000, 16_777),
            (0, 10_000, 1_677),
            (1_008, 1_024, 256),
            (1_048_560, 1_000, 2),
        ] {
            assert_eq!(
                with(payload).run_steps(trajectories).unwrap(),
                steps,
                "{payload} {trajectories}"
            );
        }

        let refused = with(1 << 20).run_steps(100_000).unwrap_err().to_string();
        for part in ["100000 trajectories", "1048576 bytes", "MiB", "lower one"] {
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn only_affected_agents_are_named() {
        let faults = Faults {
            delay: Duration::from_micros(200),
            failures: 0.0,
            faulty: vec![Role::Verifier],
        };
        assert!(faults.affect(Role::Verifier) && !faults.affect(Role::Executor));

        let plan = Plan { faults, ..Plan::steps(7) };
        let load = plan.load(true);
        assert_eq!((load.delay_us, load.faulty.as_slice()), (200, &["verifier".to_owned()][..]));
        assert_eq!((load.length, load.rate, load.durable), (Length::Steps(7), None, true));

        let none = Plan {
            faults: Faults { faulty: vec![Role::Executor], ..Faults::NONE },
            ..Plan::steps(1)
        };
        assert!(none.load(false).faulty.is_empty());
    }
}
