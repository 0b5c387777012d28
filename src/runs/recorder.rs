//! Observes a run on its cell's thread and appends its events to its stream.

use std::sync::Arc;

use super::event_stream::{EventStream, RowUpdate};
use crate::report::TraceLine;
use crate::runtime::{Event, Observer, Wake};
use prime_protocol::RunSnapshot;

pub struct Recorder {
    pub stream: Arc<EventStream>,
    /// The run's row once it has started.
    pub started: RowUpdate,
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        self.stream.append(&TraceLine::of(event));
        if matches!(event, Event::Started) {
            drop(self.stream.update(self.started.clone()));
        }
    }

    fn wants_saved(&self) -> bool {
        self.stream.wants_snapshot()
    }

    fn save(&self, saved: RunSnapshot) {
        self.stream.save_snapshot(saved);
    }

    fn is_behind(&self) -> bool {
        self.stream.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        self.stream.wake_when_free(wake);
    }
}
