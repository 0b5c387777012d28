//! Observes the runs of one trajectory for the measurement.

use std::sync::Arc;

use prime_loadtest::{StageKind, Tokens, Trajectory};
use prime_protocol::{Ending, Outcome};
use prime_runtime::{Event, Observer, Stage, StageTimes, Wake};

/// Whether an outcome is one that the load expects.
pub type Accepts = fn(&Outcome) -> bool;

/// The load's own problem is solved, step by step, without a mistake.
pub fn is_solved(outcome: &Outcome) -> bool {
    outcome.is_verified()
}

/// The agents worked, whatever the result.
pub fn is_over(outcome: &Outcome) -> bool {
    !matches!(outcome.ending, Ending::AgentFailed(_))
}

/// The stages that a step is timed in. The last is the rest; in an open loop it includes the wait
/// for the turn.
pub fn stage_kinds(is_open_loop: bool) -> Vec<StageKind> {
    let rest = if is_open_loop { "wait and supervise" } else { "supervise" };

    let timed = Stage::ALL
        .into_iter()
        .map(|stage| StageKind { name: stage.name(), is_work: stage.is_work() });

    timed.chain([StageKind { name: rest, is_work: false }]).collect()
}

fn stage_nanos(times: &StageTimes) -> [u64; Stage::COUNT] {
    Stage::ALL.map(|stage| u64::try_from(times.of(stage).as_nanos()).unwrap_or(u64::MAX))
}

/// The observer of one run.
pub struct Watch {
    trajectory: Arc<Trajectory>,
    accepts: Accepts,
    wants_stages: bool,
}

impl Watch {
    pub fn new(trajectory: Arc<Trajectory>, accepts: Accepts) -> Self {
        let wants_stages = trajectory.session().wants_stages();
        Self { trajectory, accepts, wants_stages }
    }

    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Step { usage, timing, .. } => {
                let tokens = Tokens { prompt: usage.prompt, completion: usage.completion };
                let nanos = timing.map(stage_nanos);

                self.trajectory.step(tokens, nanos.as_ref().map(<[u64; Stage::COUNT]>::as_slice));
            }
            Event::Started { .. } => self.trajectory.run_started(),
            Event::Mishap { .. } => self.trajectory.turn_failed(),
            Event::Finished(outcome) => {
                let name = || match &outcome.ending {
                    Ending::AgentFailed(reason) => format!("agent_failed ({reason})"),
                    ending => ending.name().to_owned(),
                };

                self.trajectory.run_ended((!(self.accepts)(outcome)).then(name));
            }
            _ => {}
        }
    }

    fn wants_timing(&self) -> bool {
        self.wants_stages
    }

    fn is_behind(&self) -> bool {
        self.trajectory.must_wait()
    }

    fn wake_when_free(&self, wake: Wake) {
        self.trajectory.wait(wake);
    }
}
