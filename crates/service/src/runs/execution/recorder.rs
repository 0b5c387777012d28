//! Observes a run on its cell's thread and appends its events to its stream.

use std::sync::Arc;

use tracing::Span;

use super::sent::{Hears, Sent};
use crate::runs::live::writings::Writings;
use crate::runs::store::Clock;
use crate::runs::store::event_stream::{EventStream, RowUpdate};
use prime_protocol::{Role, RunSnapshot, TurnId};
use prime_report::{Judge, TraceLine};
use prime_runtime::{Event, Listener, Observer, Wake};

/// Maximum bytes of a snapshot, as JSON. It is written in one commit, for which all other runs
/// wait, and the journal takes no body above 256 MiB. Without a snapshot, a later process replays
/// more events.
const SNAPSHOT_BYTES_MAX: usize = 64 << 20;

/// Writes the events of one run.
pub struct Recorder {
    pub stream: Arc<EventStream>,
    /// What the run's models write.
    pub writings: Arc<Writings>,
    /// What was sent to models.
    pub sent: Arc<Sent>,
    /// The run's row once it has started, but for the time.
    pub started: RowUpdate,
    /// Tells that time: the run may wait long before it starts.
    pub clock: Clock,
    /// The judge of its steps.
    pub judge: Judge,
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        let mut line = TraceLine::of(event);
        if let TraceLine::Started { judge, .. } = &mut line {
            *judge = Some(&self.judge);
        }
        let sent = match event {
            Event::Step { id, .. } => self.sent.take(*id),
            _ => Vec::new(),
        };
        if let TraceLine::Step(step) = &mut line {
            step.sent = sent.into();
        }
        self.stream.append(&line);
        if let Event::Step { id, .. }
        | Event::Mishap { id, .. }
        | Event::TurnFailed { id, .. }
        | Event::TrajectoryEnded { id, .. } = event
        {
            self.writings.end(*id);
        }
        if matches!(event, Event::Started { .. }) {
            // The run's row says that it runs once that is durable, together with the event.
            let row = RowUpdate { updated_ms: (self.clock)(), ..self.started.clone() };
            drop(self.stream.update(row));
        }
    }

    fn attach(&self, span: &Span) {
        self.stream.attach(span);
    }

    fn listener(&self, id: TurnId, role: Role) -> Option<Listener> {
        Some(Arc::new(Hears {
            id,
            role,
            writings: Arc::clone(&self.writings),
            sent: Arc::clone(&self.sent),
        }))
    }

    fn wants_snapshot(&self) -> bool {
        self.stream.wants_snapshot()
    }

    fn save_snapshot(&self, snapshot: RunSnapshot) {
        self.stream.save_snapshot(snapshot, SNAPSHOT_BYTES_MAX);
    }

    fn is_behind(&self) -> bool {
        self.stream.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        self.stream.wake_when_free(wake);
    }
}
