//! A run's trace as JSON Lines: its spec, then its durable events.

use std::sync::Arc;

use futures::{Stream, TryStreamExt as _, stream};

use super::event_reader::EventBatch;
use super::progress::Progress;
use super::replay::apply;
use super::service::{RunError, Runs};
use super::spec::RunSpec;
use crate::report::RecordedEvent;
use prime_protocol::Replay;

impl Runs {
    /// The trace; with `states`, each step has the state that it was proposed in.
    ///
    /// # Errors
    /// When the run does not exist, or this version does not know its task.
    pub async fn trace(
        self: &Arc<Self>,
        id: &str,
        states: bool,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, RunError>> + use<>, RunError> {
        let row = self.row(id).await?;
        let spec: RunSpec = serde_json::from_str(&row.spec).map_err(|error| RunError::Unreadable(error.to_string()))?;
        let problem = spec.problem().map_err(RunError::Unreadable)?;
        let replay = states.then(|| Replay::new(problem, spec.plan.clone()));
        let mut head = format!(r#"{{"seq":0,"event":"accepted","run":"{id}","spec":{}}}"#, row.spec).into_bytes();
        head.push(b'\n');
        let events = self.events(id, 0, false);
        let lines = stream::try_unfold((Box::pin(events), replay), |(mut events, replay)| async move {
            let Some(lines) = events.try_next().await? else { return Ok(None) };
            // Replaying takes too long for a thread that serves.
            let rendered = tokio::task::spawn_blocking(move || {
                let mut replay = replay;
                let text = trace_lines(&lines, replay.as_mut());
                (text, replay)
            });
            let (text, replay) = rendered.await.map_err(|_| RunError::Draining)?;
            Ok(Some((text?, (events, replay))))
        });
        Ok(futures::StreamExt::chain(stream::iter([Ok(head)]), lines))
    }
}

/// Events as lines of a trace.
fn trace_lines(lines: &EventBatch, mut replay: Option<&mut Replay>) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    let mut progress = Progress::default();
    for (seq, event) in lines.events() {
        text.extend_from_slice(format!(r#"{{"seq":{seq},"#).as_bytes());
        let rest = event.strip_prefix(b"{").unwrap_or(event);
        let Some(replay) = replay.as_mut() else {
            text.extend_from_slice(rest);
            text.push(b'\n');
            continue;
        };
        text.extend_from_slice(rest.strip_suffix(b"}").unwrap_or(rest));
        if let Ok(RecordedEvent::Step(step)) = RecordedEvent::read(event)
            && let Some(trajectory) = replay.trajectory(step.id())
        {
            text.extend_from_slice(br#","state":"#);
            text.extend_from_slice(trajectory.machine.state().to_string().as_bytes());
        }
        text.extend_from_slice(b"}\n");
        apply(replay, event, &mut progress).map_err(|reason| RunError::Unreadable(format!("event {seq}: {reason}")))?;
    }
    Ok(text)
}
