//! The events of a run for those who watch or study it: only what is durable, in order, each once.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{Stream, stream};

use super::live::LiveRun;
use super::progress::Progress;
use super::resume::apply;
use super::service::{RunError, Runs};
use super::spec::RunSpec;
use crate::report::Recorded;
use prime_journal::Segment;
use prime_protocol::Replay;

/// Bytes of events that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Why events cannot be read on.
pub type ReadError = RunError;

/// Events of a run: those of a segment that come after one of them.
#[derive(Clone, Debug)]
pub struct EventLine {
    segment: Arc<Segment>,
    after: u64,
}

impl EventLine {
    /// The events with their numbers, without newlines.
    pub fn events(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segment.events().filter(|(seq, _)| *seq > self.after)
    }
}

struct Reader {
    runs: Arc<Runs>,
    id: String,
    after: u64,
    live: Option<Arc<LiveRun>>,
    follows: bool,
    ready: VecDeque<Arc<Segment>>,
    is_done: bool,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<EventLine>, ReadError> {
        loop {
            if let Some(segment) = self.ready.pop_front() {
                let after = std::mem::replace(&mut self.after, segment.last_seq());
                return Ok(Some(EventLine { segment, after }));
            }
            if self.is_done {
                return Ok(None);
            }
            let Some(live) = self.live.clone() else {
                self.fetch().await?;
                self.is_done = self.ready.is_empty();
                continue;
            };
            let mut watch = live.stream.watch();
            let committed = *watch.borrow_and_update();
            if committed.head.seq > self.after {
                match live.stream.at_hand(self.after) {
                    Some(segment) => self.ready.push_back(segment),
                    None => self.fetch().await?,
                }
            } else if committed.is_over || !self.follows {
                self.is_done = true;
            } else {
                let mut drained = self.runs.drained();
                tokio::select! {
                    changed = watch.changed() => self.is_done = changed.is_err(),
                    _ = drained.wait_for(|drained| *drained) => self.is_done = true,
                }
            }
        }
    }

    async fn fetch(&mut self) -> Result<(), ReadError> {
        let segments = self.runs.segments(&self.id, self.after, READ_BYTES).await?;
        self.ready.extend(segments.into_iter().map(Arc::new));
        Ok(())
    }
}

impl Runs {
    /// The durable events of a run after `after`. With `follows`, those to come as well, until the run is over or the
    /// daemon drains.
    pub fn events(
        self: &Arc<Self>,
        id: &str,
        after: u64,
        follows: bool,
    ) -> impl Stream<Item = Result<EventLine, ReadError>> + use<> {
        let reader = Reader {
            runs: Arc::clone(self),
            id: id.to_owned(),
            after,
            live: self.live(id),
            follows,
            ready: VecDeque::new(),
            is_done: false,
        };
        stream::try_unfold(reader, |mut reader| async move { Ok(reader.next().await?.map(|events| (events, reader))) })
    }

    /// A run's record for study, as JSON Lines: what was asked for, then every event with its number and, with
    /// `states`, the state that each step was proposed in.
    ///
    /// # Errors
    /// When there is no such run, or this version does not know its task.
    pub async fn trace(
        self: &Arc<Self>,
        id: &str,
        states: bool,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, ReadError>> + use<>, RunError> {
        let row = self.row(id).await?;
        let spec: RunSpec = serde_json::from_str(&row.spec).map_err(|error| RunError::Unreadable(error.to_string()))?;
        let problem = spec.problem().map_err(RunError::Unreadable)?;
        let fold = states.then(|| Replay::new(problem, spec.plan.clone()));
        let mut head = format!(r#"{{"seq":0,"event":"accepted","run":"{id}","spec":{}}}"#, row.spec).into_bytes();
        head.push(b'\n');
        let events = self.events(id, 0, false);
        let lines = stream::try_unfold((Box::pin(events), fold), |(mut events, fold)| async move {
            use futures::TryStreamExt as _;
            let Some(lines) = events.try_next().await? else { return Ok(None) };
            // States are computed beside the threads that serve.
            let told = tokio::task::spawn_blocking(move || {
                let mut fold = fold;
                let text = tell(&lines, fold.as_mut());
                (text, fold)
            });
            let (text, fold) = told.await.map_err(|_| RunError::Draining)?;
            Ok(Some((text?, (events, fold))))
        });
        Ok(futures::StreamExt::chain(stream::iter([Ok(head)]), lines))
    }
}

/// Events as lines of a trace.
fn tell(lines: &EventLine, mut fold: Option<&mut Replay>) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    let mut progress = Progress::default();
    for (seq, event) in lines.events() {
        text.extend_from_slice(format!(r#"{{"seq":{seq},"#).as_bytes());
        let rest = event.strip_prefix(b"{").unwrap_or(event);
        let Some(fold) = fold.as_mut() else {
            text.extend_from_slice(rest);
            text.push(b'\n');
            continue;
        };
        text.extend_from_slice(rest.strip_suffix(b"}").unwrap_or(rest));
        if let Ok(Recorded::Step(step)) = Recorded::read(event)
            && let Some(trajectory) = fold.trajectory(step.id())
        {
            text.extend_from_slice(br#","state":"#);
            text.extend_from_slice(trajectory.machine.state().to_string().as_bytes());
        }
        text.extend_from_slice(b"}\n");
        apply(fold, event, &mut progress).map_err(|reason| RunError::Unreadable(format!("event {seq}: {reason}")))?;
    }
    Ok(text)
}
