//! A run's trace as JSON Lines: its spec, then its durable events.

use std::borrow::Cow;

use futures::{Stream, TryStreamExt as _, stream};
use serde::Serialize;
use serde_json::Value;

use super::RunReader;
use super::event_reader::EventBatch;
use crate::runs::error::RunError;
use crate::runs::progress::Progress;
use crate::runs::spec::RunSpec;
use crate::runs::store::replay::apply;
use prime_agent_set::RecordedPrompts;
use prime_agent_set::llm::Asked;
use prime_agent_set::task_program::TaskPrograms;
use prime_protocol::{Replay, Reward, Trajectory};
use prime_report::{LastPrompts, RecordedEvent, SentExchange, StepLine};

/// What the steps of a trace show besides the recorded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContent {
    /// True if steps show the state in which they were proposed, and their reward.
    pub states: bool,
    /// True if steps show what a model was asked and answered, and their reward.
    pub prompts: bool,
}

impl TraceContent {
    /// The events alone, as the journal keeps them.
    pub const EVENTS: Self = Self { states: false, prompts: false };
}

/// Adds to each event what follows from the events before it.
struct Annotator {
    content: TraceContent,
    /// `None` once the task's program has failed: what follows from states is then left out.
    replay: Option<Replay>,
    /// Why, until a line has said it.
    left_out: Option<String>,
    /// Only a program may fail; otherwise the events are damaged.
    is_of_program: bool,
    prompts: Option<RecordedPrompts>,
    /// Earlier prompts, since the journal keeps only what is new in each.
    last: LastPrompts,
}

/// The fields that follow from the run's state before a step.
#[derive(Serialize)]
struct Before<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<Cow<'a, str>>,
    /// What models were sent and what they answered, whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exchanges: Vec<SentExchange>,
}

/// The same, with what follows from the state after the step.
#[derive(Serialize)]
struct Annotated<'a> {
    #[serde(flatten)]
    before: Before<'a>,
    reward: Reward,
}

/// What is added to a step whose state is not known.
#[derive(Serialize)]
struct WithoutStates {
    /// What this step and those after it lack, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exchanges: Vec<SentExchange>,
}

impl Annotator {
    fn before<'a>(
        &self,
        step: &'a StepLine<'_>,
        trajectory: &Trajectory,
    ) -> Result<Before<'a>, String> {
        let asked =
            self.prompts.as_ref().map(|prompts| prompts.of(step.source.as_deref(), trajectory));
        let asked = asked.transpose().map_err(|error| error.to_string())?.flatten();

        let completion = asked.is_some().then(|| step.completion());
        let (system, prompt) =
            asked.map_or((None, None), |Asked { system, prompt }| (system, Some(prompt)));

        Ok(Before {
            state: self.content.states.then(|| trajectory.machine.state()),
            system,
            prompt,
            completion,
            exchanges: Vec::new(),
        })
    }

    /// The fields of an event without those that follow from states. The first such step says why.
    fn without_states(&mut self, exchanges: Vec<SentExchange>) -> Result<Option<String>, String> {
        let left_out = self.left_out.take();
        if left_out.is_none() && exchanges.is_empty() {
            return Ok(None);
        }
        let fields = serde_json::to_string(&WithoutStates { left_out, exchanges });
        fields.map(Some).map_err(|error| error.to_string())
    }

    /// Continues without states if the task's program is to blame.
    fn give_up(&mut self, reason: String) -> Result<(), String> {
        if !self.is_of_program {
            return Err(reason);
        }
        self.replay = None;
        self.left_out = Some(format!("states, prompts and rewards from here on: {reason}"));
        Ok(())
    }

    /// Applies an event; returns the fields to add if it is a step.
    fn pass(&mut self, event: &[u8], progress: &mut Progress) -> Result<Option<String>, String> {
        let recorded =
            RecordedEvent::read(event).map_err(|error| format!("not an event: {error}"))?;
        let RecordedEvent::Step(step) = &recorded else {
            let Some(replay) = &mut self.replay else { return Ok(None) };
            let applied = apply(replay, event, progress).map_err(|error| error.to_string());
            applied.or_else(|reason| self.give_up(reason))?;
            return Ok(None);
        };
        let exchanges = if self.prompts.is_some() {
            let unpacked = step.sent.iter().map(|sent| self.last.unpack(sent.clone()));
            unpacked.collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let Some(mut replay) = self.replay.take() else { return self.without_states(exchanges) };
        // This comes before the event is applied, which may replace the trajectory's state.
        let known = replay
            .trajectory(step.id())
            .map(|trajectory| (trajectory.counts, self.before(step, trajectory)));

        if let Err(error) = apply(&mut replay, event, progress) {
            self.give_up(error.to_string())?;
            return self.without_states(exchanges);
        }
        let Some((counts, before)) = known else {
            self.replay = Some(replay);
            return Ok(None);
        };
        let reward = replay.step_reward(step.id(), counts, step.applicable, step.score);
        let annotated =
            serde_json::to_string(&Annotated { before: Before { exchanges, ..before? }, reward });
        self.replay = Some(replay);
        annotated.map(Some).map_err(|error| error.to_string())
    }
}

impl RunReader {
    /// The trace of a run: its spec, then its durable events, a line each.
    ///
    /// # Errors
    /// When the run does not exist, this version does not know its task, or the prompts of its
    /// executor are not known. If the program of its task fails, the events come without what
    /// follows from states, and the first step says so.
    pub async fn trace(
        &self,
        id: &str,
        content: TraceContent,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, RunError>> + use<>, RunError> {
        let row = self.store.row(id).await?;
        let spec: RunSpec = serde_json::from_str(&row.spec)
            .map_err(|error| RunError::Unreadable(error.to_string()))?;
        let tasks = self.store.tasks().asked_by(&row.owner);
        let annotator = if content == TraceContent::EVENTS {
            None
        } else {
            Some(annotator(content, &spec, tasks).await?)
        };

        let mut head =
            format!(r#"{{"seq":0,"event":"accepted","run":"{id}","spec":{}}}"#, row.spec)
                .into_bytes();
        head.push(b'\n');

        let events = self.events(id, 0, false);
        let lines = stream::try_unfold(
            (Box::pin(events), annotator),
            |(mut events, annotator)| async move {
                let Some(lines) = events.try_next().await? else { return Ok(None) };
                // Replaying takes too long for a thread that serves.
                let rendered = tokio::task::spawn_blocking(move || {
                    let mut annotator = annotator;
                    let text = trace_lines(&lines, annotator.as_mut());
                    (text, annotator)
                });
                let (text, annotator) = rendered.await.map_err(|_| RunError::Draining)?;
                Ok(Some((text?, (events, annotator))))
            },
        );
        Ok(futures::StreamExt::chain(stream::iter([Ok(head)]), lines))
    }
}

/// What adds to the events of a run what follows from them.
async fn annotator(
    content: TraceContent,
    spec: &RunSpec,
    tasks: TaskPrograms,
) -> Result<Annotator, RunError> {
    let of = spec.clone();
    // The program of a task may have to be asked.
    let problem = tokio::task::spawn_blocking(move || of.problem(&tasks));
    let (replay, left_out) = match problem.await.map_err(|_| RunError::Draining)? {
        Ok(problem) => (Some(Replay::new(problem, spec.plan.clone())), None),
        Err(error) if spec.is_of_program => {
            (None, Some(format!("states, prompts and rewards: {error}")))
        }
        Err(error) => return Err(error.into()),
    };
    let prompts = content.prompts.then(|| prompts_of(spec)).transpose()?;
    Ok(Annotator {
        content,
        replay,
        left_out,
        is_of_program: spec.is_of_program,
        prompts,
        last: LastPrompts::default(),
    })
}

impl RunReader {
    /// What models were sent for a step and what they answered; none if the journal keeps nothing
    /// of it. Reads the run up to the step.
    ///
    /// # Errors
    /// When the run does not exist, or has no step of this number.
    pub async fn exchanges(&self, id: &str, seq: u64) -> Result<Vec<SentExchange>, RunError> {
        self.store.row(id).await?;
        let mut events = Box::pin(self.events(id, 0, false));
        let mut last = LastPrompts::default();

        while let Some(lines) = events.try_next().await? {
            let reading = tokio::task::spawn_blocking(move || {
                let found = exchanges_of(&lines, seq, &mut last);
                (found, last)
            });
            let (found, passed) = reading.await.map_err(|_| RunError::Draining)?;
            last = passed;
            let found = found
                .map_err(|reason| RunError::Unreadable(format!("up to event {seq}: {reason}")))?;
            if let Some(exchanges) = found {
                return Ok(exchanges);
            }
        }
        Err(RunError::NoSuchStep(seq))
    }
}

/// The exchanges of the step `seq`, if it is among these events.
fn exchanges_of(
    lines: &EventBatch,
    seq: u64,
    last: &mut LastPrompts,
) -> Result<Option<Vec<SentExchange>>, String> {
    for (at, event) in lines.events().take_while(|(at, _)| *at <= seq) {
        let recorded =
            RecordedEvent::read(event).map_err(|error| format!("not an event: {error}"))?;
        let RecordedEvent::Step(step) = recorded else { continue };
        let unpacked = step.sent.iter().map(|sent| last.unpack(sent.clone()));
        let unpacked = unpacked.collect::<Result<Vec<_>, _>>()?;
        if at == seq {
            return Ok(Some(unpacked));
        }
    }
    Ok(None)
}

fn prompts_of(spec: &RunSpec) -> Result<RecordedPrompts, RunError> {
    let unknown = |reason: &dyn std::fmt::Display| {
        RunError::Conflict(format!("its prompts are not known: {reason}"))
    };
    let recorded = spec.recorded.as_ref().ok_or_else(|| unknown(&"its agents are custom ones"))?;
    recorded.executor_prompts().map_err(|missing| unknown(&missing))
}

/// Renders events as lines of a trace.
fn trace_lines(
    lines: &EventBatch,
    mut annotator: Option<&mut Annotator>,
) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    let mut progress = Progress::default();
    for (seq, event) in lines.events() {
        text.extend_from_slice(format!(r#"{{"seq":{seq},"#).as_bytes());
        let rest = event.strip_prefix(b"{").unwrap_or(event);

        let added =
            annotator.as_mut().map(|annotator| annotator.pass(event, &mut progress)).transpose();
        let added = added
            .map_err(|reason| RunError::Unreadable(format!("event {seq}: {reason}")))?
            .flatten();
        // Both are JSON objects: the event without its last brace, the fields without their first.
        match added {
            None => text.extend_from_slice(rest),
            Some(fields) => {
                text.extend_from_slice(rest.strip_suffix(b"}").unwrap_or(rest));
                text.push(b',');
                text.extend_from_slice(&fields.as_bytes()[1..]);
            }
        }
        text.push(b'\n');
    }
    Ok(text)
}
