//! The observer of one trajectory: times its steps, and holds it until its next step is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::gate::Gate;
use super::session::{Phase, Session};
use crate::runtime::{Event, Observer, Wake};
use prime_protocol::{Ending, Outcome};

/// How a run of a trajectory ended.
pub struct Ended {
    pub trajectory: u32,
    /// Why the figures are worthless, if so.
    pub failure: Option<String>,
}

/// Whether an outcome is one that the load expects.
pub type Accepts = fn(&Outcome) -> bool;

/// The load's own problem is solved, step by step, without a mistake.
pub fn is_solved(outcome: &Outcome) -> bool {
    outcome.verified
}

/// The agents did what they are there for, whatever came of it.
pub fn is_over(outcome: &Outcome) -> bool {
    !matches!(outcome.ending, Ending::AgentFailed(_))
}

/// Watches one trajectory of the load, over all of its runs. Its counters are written by the trajectory's cell alone.
pub struct Watch {
    session: Arc<Session>,
    trajectory: u32,
    pub gate: Gate,
    /// When its last step was decided, or its run began.
    last: AtomicU64,
    /// Steps that were decided since the load began.
    decided: AtomicU64,
    /// Of these, those that were measured.
    measured: AtomicU64,
    accepts: Accepts,
    ended: mpsc::UnboundedSender<Ended>,
}

impl Watch {
    pub fn new(session: Arc<Session>, trajectory: u32, accepts: Accepts, ended: mpsc::UnboundedSender<Ended>) -> Self {
        Self {
            session,
            trajectory,
            gate: Gate::default(),
            last: AtomicU64::new(0),
            decided: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            accepts,
            ended,
        }
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Its number, from 0.
    pub fn trajectory(&self) -> u32 {
        self.trajectory
    }

    /// Steps that were decided since the load began.
    pub fn decided(&self) -> u64 {
        self.decided.load(Ordering::Relaxed)
    }

    fn step(&self, event: &Event<'_>) {
        let Event::Step { usage, timing, .. } = event else { return };
        let now = self.session.now();
        let last = self.last.load(Ordering::Relaxed);
        let decided = self.decided();
        self.last.store(now, Ordering::Relaxed);
        self.decided.store(decided + 1, Ordering::Relaxed);
        if !self.session.is(Phase::Measuring) {
            return;
        }
        let from = self.session.schedule.as_ref().map_or(last, |schedule| schedule.due(self.trajectory, decided));
        let nanos = now.saturating_sub(from).max(1);
        self.session.write(|record| record.step(now, nanos, *usage, *timing));
        if let Some(steps) = self.session.steps {
            let measured = self.measured.load(Ordering::Relaxed) + 1;
            self.measured.store(measured, Ordering::Relaxed);
            if measured == steps {
                self.session.count_finished();
            }
        }
    }

    /// Whether all of its steps are measured: it rests then, while others go on.
    fn is_finished(&self) -> bool {
        self.session.steps.is_some_and(|steps| self.measured.load(Ordering::Relaxed) >= steps)
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Step { .. } => self.step(event),
            Event::Started => self.last.store(self.session.now(), Ordering::Relaxed),
            Event::Mishap { .. } if self.session.is(Phase::Measuring) => {
                self.session.write(|record| record.failures += 1);
            }
            Event::Finished(outcome) => {
                let name = || match &outcome.ending {
                    Ending::AgentFailed(reason) => format!("agent_failed ({reason})"),
                    ending => ending.name().to_owned(),
                };
                let failure = (!(self.accepts)(outcome)).then(name);
                // Nobody listens when the load is over.
                drop(self.ended.send(Ended { trajectory: self.trajectory, failure }));
            }
            _ => {}
        }
    }

    fn wants_timing(&self) -> bool {
        self.session.has_legs
    }

    fn is_behind(&self) -> bool {
        self.gate.is_shut(self.decided()) || self.is_finished()
    }

    fn wake_when_free(&self, wake: Wake) {
        if self.is_finished() {
            // Its run is ended with all others when the measurement is over.
            return;
        }
        if self.session.is(Phase::Idle) {
            self.gate.wait(self.decided(), wake);
            self.session.count_idle();
        } else {
            self.gate.wait(self.decided(), wake);
        }
    }
}
