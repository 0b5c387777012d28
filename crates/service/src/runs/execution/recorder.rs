//! Observes a run on its cell's thread and appends its events to its stream.

use std::sync::Arc;

use tracing::Span;

use super::sent::{Hears, Sent};
use crate::runs::approvals::policy::{ApprovalPolicy, Gate};
use crate::runs::approvals::record::{About, HeldLine};
use crate::runs::approvals::waits::Waits;
use crate::runs::live::writings::Writings;
use crate::runs::store::Clock;
use crate::runs::store::event_stream::{EventStream, RowUpdate};
use prime_journal::NewApproval;
use prime_protocol::{Role, RunSnapshot, TurnId};
use prime_report::{Judge, TraceLine};
use prime_runtime::{Event, Listener, Observer, Wake};
use prime_settings::ApproveElse;

/// Maximum bytes of a snapshot, as JSON. It is written in one commit, for which all other runs
/// wait, and the journal takes no body above 256 MiB. Without a snapshot, a later process replays
/// more events.
const SNAPSHOT_BYTES_MAX: usize = 64 << 20;

/// Milliseconds after a run's deadline at which its steps wait no longer: the journal's clock may
/// be ahead of this one.
const AFTER_DEADLINE_MS: u64 = 100;

/// What the list of steps that wait says about a run.
pub struct Shown {
    pub task: String,
    pub instance: String,
    pub policy: Option<ApprovalPolicy>,
    /// When the run has to end, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    pub clock: Clock,
}

impl Shown {
    /// The approval of a step that begins to wait now.
    pub fn approval(
        &self,
        number: u32,
        line: impl FnOnce(&About<'_>) -> Option<HeldLine>,
    ) -> Option<NewApproval> {
        let policy = self.policy.as_ref()?;
        let (task, instance, now_ms) = (&self.task, &self.instance, (self.clock)());
        // A run that waits in the journal alone must still end at its deadline.
        let left_ms = self.deadline_ms.map(|deadline_ms| deadline_ms.saturating_sub(now_ms));
        let (within_ms, otherwise) = match left_ms.filter(|left_ms| *left_ms < policy.within_ms) {
            Some(left_ms) => (left_ms + AFTER_DEADLINE_MS, ApproveElse::End),
            None => (policy.within_ms, policy.otherwise),
        };
        let line = line(&About { task, instance, otherwise, now_ms })?;
        let body = serde_json::to_string(&line).expect("invariant: lines serialise");
        Some(NewApproval { number, within_ms, body })
    }
}

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
    /// Which steps wait for approval; `None` if none do.
    pub gate: Option<Gate>,
    /// Those that wait.
    pub waits: Arc<Waits>,
    /// What the list of those says about the run.
    pub shown: Shown,
}

impl Recorder {
    /// Keeps the list of steps that wait for approval.
    fn note_waits(&self, event: &Event<'_>) {
        if self.gate.is_none() {
            return;
        }
        match event {
            Event::Waiting { number, step } => {
                let Event::Step { id, .. } = step else { return };
                let approval =
                    self.shown.approval(*number, |about| HeldLine::of_event(step, about));
                if let Some(approval) = approval {
                    self.waits.add(*id, approval, self.stream.appended());
                }
            }
            Event::Step { id, .. } | Event::TurnFailed { id, .. } => self.waits.settled(*id),
            Event::Voted { round, .. } => self.waits.round_over(*round, self.stream.appended()),
            _ => {}
        }
    }
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        let mut line = TraceLine::of(event);
        if let TraceLine::Started { judge, .. } = &mut line {
            *judge = Some(&self.judge);
        }
        let sent = match event {
            Event::Step { id, .. } | Event::Waiting { step: Event::Step { id, .. }, .. } => {
                self.sent.take(*id)
            }
            _ => Vec::new(),
        };
        if let TraceLine::Step(step) | TraceLine::Waiting(step) = &mut line {
            step.sent = sent.into();
        }
        self.stream.append(&line);
        self.note_waits(event);
        if let Event::Step { id, .. }
        | Event::Waiting { step: Event::Step { id, .. }, .. }
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
        let (writings, sent) = (Arc::clone(&self.writings), Arc::clone(&self.sent));
        Some(Arc::new(Hears::new(id, role, writings, sent)))
    }

    fn may_hold(&self) -> bool {
        self.gate.is_some()
    }

    fn holds(&self, step: &Event<'_>) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.holds(step))
    }

    fn suspended(&self) {
        self.waits.suspend();
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
