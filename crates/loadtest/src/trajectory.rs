//! One trajectory of a load, over all of its runs: times its steps, and holds it until its next
//! step is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::gate::{Gate, Wake};
use super::record::Tokens;
use super::session::{Phase, Session};

/// The end of one run of a trajectory.
pub struct RunEnd {
    /// Number of the trajectory, from 0.
    pub trajectory: u32,
    /// Why the measurement is invalid, if it is.
    pub failure: Option<String>,
}

/// A trajectory of a load. Only the trajectory's own thread writes its counters.
pub struct Trajectory {
    session: Arc<Session>,
    number: u32,
    pub(crate) gate: Gate,
    /// The time at which its last step was decided, or its run began.
    last: AtomicU64,
    /// Steps decided since the load began.
    decided: AtomicU64,
    /// Steps measured.
    measured: AtomicU64,
    ends: mpsc::UnboundedSender<RunEnd>,
}

impl Trajectory {
    pub(crate) fn new(
        session: Arc<Session>,
        number: u32,
        ends: mpsc::UnboundedSender<RunEnd>,
    ) -> Self {
        Self {
            session,
            number,
            gate: Gate::default(),
            last: AtomicU64::new(0),
            decided: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            ends,
        }
    }

    /// The measurement that the trajectory belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The trajectory's number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Steps decided since the load began.
    pub fn decided(&self) -> u64 {
        self.decided.load(Ordering::Relaxed)
    }

    /// Records that a run began.
    pub fn run_started(&self) {
        self.last.store(self.session.now(), Ordering::Relaxed);
    }

    /// Records that a step was decided. `stage_nanos` has the time of each stage but the last, if
    /// they are timed.
    pub fn step(&self, tokens: Tokens, stage_nanos: Option<&[u64]>) {
        let now = self.session.now();
        let last = self.last.load(Ordering::Relaxed);
        let decided = self.decided();
        self.last.store(now, Ordering::Relaxed);
        self.decided.store(decided + 1, Ordering::Relaxed);

        if !self.session.is(Phase::Measuring) {
            return;
        }

        // In an open loop the latency includes the time that the step was held up.
        let from = self
            .session
            .schedule
            .as_ref()
            .map_or(last, |schedule| schedule.due(self.number, decided));
        let nanos = now.saturating_sub(from).max(1);

        self.session.write(|record| {
            record.step(now, nanos, tokens);
            if let Some(times) = stage_nanos {
                record.stage_times(nanos, &self.session.stages, times);
            }
        });

        if let Some(steps) = self.session.steps {
            let measured = self.measured.load(Ordering::Relaxed) + 1;
            self.measured.store(measured, Ordering::Relaxed);
            if measured == steps {
                self.session.count_finished();
            }
        }
    }

    /// Records that a turn failed and is retried.
    pub fn turn_failed(&self) {
        if self.session.is(Phase::Measuring) {
            self.session.write(|record| record.failures += 1);
        }
    }

    /// Records that a run ended; with `failure`, the measurement fails.
    pub fn run_ended(&self, failure: Option<String>) {
        // Nothing receives this once the load is over.
        drop(self.ends.send(RunEnd { trajectory: self.number, failure }));
    }

    /// Returns whether the next step must wait.
    pub fn must_wait(&self) -> bool {
        self.gate.is_shut(self.decided()) || self.is_finished()
    }

    /// Calls `wake` when the next step may begin: at once, later, or never if all of its steps are
    /// measured.
    pub fn wait(&self, wake: Wake) {
        if self.is_finished() {
            // Its run is halted with all others at the end of the measurement.
            return;
        }

        if self.session.is(Phase::Idle) {
            self.gate.wait(self.decided(), wake);
            self.session.count_idle();
        } else {
            self.gate.wait(self.decided(), wake);
        }
    }

    /// Returns whether all of its steps are measured. It then rests while the others continue.
    fn is_finished(&self) -> bool {
        self.session.steps.is_some_and(|steps| self.measured.load(Ordering::Relaxed) >= steps)
    }
}
