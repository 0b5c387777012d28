//! The steps of a run as text: those that led to the answer, or those of one trajectory as they are
//! committed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use futures::TryStreamExt as _;
use serde::Deserialize;
use serde_json::Value;

use prime_protocol::{Decision, Score, TurnId};
use prime_report::{RecordedEvent, StepLine};
use prime_service::runs::{RunError, RunRecord, Runs};

/// Longest text of steps in a message, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// The trajectory that is streamed.
const STREAMED: u32 = 0;

/// How recorded ends of trajectories, and steps, begin.
const END: &[u8] = br#"{"event":"trajectory_ended","#;
const STEP: &[u8] = br#"{"event":"step","#;

/// The recorded end of a trajectory.
#[derive(Deserialize)]
struct Ended {
    round: u32,
    trajectory: u32,
    answer: Option<Value>,
}

fn unreadable(error: &serde_json::Error) -> RunError {
    RunError::Unreadable(error.to_string())
}

/// Reads a step; `None` for events of other kinds.
fn step_of(event: &[u8]) -> Result<Option<StepLine<'_>>, RunError> {
    if !event.starts_with(STEP) {
        return Ok(None);
    }
    // The whole event is parsed only now: most events of other kinds are recognised by their first
    // bytes.
    match RecordedEvent::read(event).map_err(|error| unreadable(&error))? {
        RecordedEvent::Step(step) => Ok(Some(step)),
        _ => Ok(None),
    }
}

fn is_committed(step: &StepLine<'_>) -> bool {
    step.applicable && step.decision == Decision::Proceed
}

/// Writes a committed step: what was thought and derived, if anything, then its action, one line
/// each.
fn write(text: &mut String, step: &StepLine<'_>) {
    if !step.reasoning.is_empty() {
        text.push_str(&step.reasoning);
        text.push('\n');
    }
    if !step.derivation.is_empty() {
        text.push_str(&step.derivation);
        text.push('\n');
    }
    text.push_str(&step.action);
    text.push('\n');
}

/// Finds the trajectory that gave an answer: among several, the one with the lowest sum of scores,
/// then the first to end.
struct Search<'a> {
    answer: &'a Value,
    /// Scores above zero among the committed steps of each trajectory, by depth.
    tolerated: HashMap<TurnId, Vec<(usize, Score)>>,
    best: Option<(Score, TurnId)>,
}

impl Search<'_> {
    fn see(&mut self, event: &[u8]) -> Result<(), RunError> {
        if let Some(step) = step_of(event)? {
            let scores = self.tolerated.entry(step.id()).or_default();
            // A step at this depth replaces what was committed there and below.
            scores.retain(|(depth, _)| *depth < step.depth);
            if is_committed(&step) && step.score > Score::ZERO {
                scores.push((step.depth, step.score));
            }
        } else if event.starts_with(END) {
            let Ended { round, trajectory, answer } =
                serde_json::from_slice(event).map_err(|error| unreadable(&error))?;
            let id = TurnId { round, trajectory };
            let scores = self.tolerated.remove(&id).unwrap_or_default();
            if answer.as_ref() == Some(self.answer) {
                let sum = scores.iter().fold(Score::ZERO, |sum, (_, score)| sum.plus(*score));
                if self.best.is_none_or(|(best, _)| sum < best) {
                    self.best = Some((sum, id));
                }
            }
        }
        Ok(())
    }
}

/// The committed steps of one trajectory, as bounded text.
struct Committed {
    id: TurnId,
    text: String,
    /// Where each step ends in the text.
    ends: Vec<usize>,
    bytes_max: usize,
    /// The first step beyond the bound.
    cut_at: Option<usize>,
}

impl Committed {
    fn new(id: TurnId, bytes_max: usize) -> Self {
        Self { id, text: String::new(), ends: Vec::new(), bytes_max, cut_at: None }
    }

    fn see(&mut self, event: &[u8]) -> Result<(), RunError> {
        let Some(step) = step_of(event)?.filter(|step| step.id() == self.id) else { return Ok(()) };
        // A step at this depth takes back what was committed there and below.
        self.ends.truncate(step.depth);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
        self.cut_at = self.cut_at.filter(|cut_at| *cut_at < step.depth);

        if is_committed(&step) {
            let length = step.action.len() + step.derivation.len() + step.reasoning.len();
            if self.cut_at.is_none() && self.text.len() + length <= self.bytes_max {
                write(&mut self.text, &step);
            } else if self.cut_at.is_none() {
                self.cut_at = Some(step.depth);
            }
            self.ends.push(self.text.len());
        }
        Ok(())
    }

    fn into_text(mut self, run: &str) -> String {
        if self.cut_at.is_some() {
            let (all, trace) = (self.ends.len(), format!("/v1/runs/{run}/trace"));
            writeln!(self.text, "({all} steps in all: GET {trace})")
                .expect("invariant: writing to a string succeeds");
        }

        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

/// The steps that led to a run's answer; `None` without an answer.
///
/// # Errors
/// When the run's events cannot be read.
pub async fn of_answer(runs: &Arc<Runs>, record: &RunRecord) -> Result<Option<String>, RunError> {
    let Some(answer) = &record.result.answer else { return Ok(None) };

    // In two passes: which trajectory gave the answer is known only at its end, and keeping the
    // text of all would take memory without bound.
    let mut search = Search { answer, tolerated: HashMap::new(), best: None };
    let mut events = Box::pin(runs.reader().events(&record.id, 0, false));
    while let Some(lines) = events.try_next().await? {
        lines.events().try_for_each(|(_, event)| search.see(event))?;
    }

    let Some((_, id)) = search.best else { return Ok(None) };
    let mut committed = Committed::new(id, TEXT_BYTES_MAX);

    let mut events = Box::pin(runs.reader().events(&record.id, 0, false));
    while let Some(lines) = events.try_next().await? {
        lines.events().try_for_each(|(_, event)| committed.see(event))?;
    }
    Ok(Some(committed.into_text(&record.id)))
}

/// Streams the steps of a run's first trajectory, round by round.
pub struct ReasoningStream {
    round: u32,
    depth: usize,
}

impl ReasoningStream {
    pub fn new() -> Self {
        Self { round: 1, depth: 0 }
    }

    /// The text that an event adds, if any.
    ///
    /// # Errors
    /// When the event cannot be read.
    pub fn delta(&mut self, event: &[u8]) -> Result<Option<String>, RunError> {
        let Some(step) = step_of(event)?.filter(|step| step.trajectory == STREAMED) else {
            return Ok(None);
        };

        let mut text = String::new();
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            text.write_fmt(arguments).expect("invariant: writing to a string succeeds");
        };

        if step.round > self.round {
            line(format_args!("(round {})\n", step.round));
        } else if step.depth < self.depth {
            line(format_args!("(back to step {})\n", step.depth));
        }

        (self.round, self.depth) = (step.round, step.depth);
        if is_committed(&step) {
            write(&mut text, &step);
            self.depth += 1;
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(
        round: u32,
        trajectory: u32,
        depth: usize,
        action: &str,
        decision: &str,
        score: f64,
    ) -> Vec<u8> {
        let event = json!({
            "event": "step", "round": round, "trajectory": trajectory, "depth": depth, "action": action,
            "applicable": true, "score": score, "violations": [], "decision": decision, "elapsed_ms": 1,
        });
        event.to_string().into_bytes()
    }

    fn ended(round: u32, trajectory: u32, answer: &Value) -> Vec<u8> {
        json!({"event": "trajectory_ended", "round": round, "trajectory": trajectory, "end": "answered", "answer": answer})
            .to_string()
            .into_bytes()
    }

    fn winner(answer: &Value, events: &[Vec<u8>]) -> Option<(u32, u32)> {
        let mut search = Search { answer, tolerated: HashMap::new(), best: None };
        events.iter().for_each(|event| search.see(event).unwrap());
        search.best.map(|(_, id)| (id.round, id.trajectory))
    }

    #[test]
    fn the_winner_is_the_cleanest_trajectory_that_gave_the_answer() {
        let events = [
            step(1, 0, 0, "a", "proceed", 0.2),
            step(1, 1, 0, "a", "proceed", 0.2),
            step(1, 2, 0, "a", "proceed", 0.0),
            ended(1, 0, &json!(7)),
            // The blemish was popped.
            step(1, 1, 0, "b", "proceed", 0.0),
            ended(1, 2, &json!(8)),
            ended(1, 1, &json!(7)),
            step(2, 0, 0, "a", "proceed", 0.0),
            ended(2, 0, &json!(7)),
        ];

        assert_eq!(winner(&json!(7), &events), Some((1, 1)));
        assert_eq!(winner(&json!(8), &events), Some((1, 2)));
        assert_eq!(winner(&json!(9), &events), None);
    }

    fn text(bytes_max: usize, events: &[Vec<u8>]) -> String {
        let mut committed = Committed::new(TurnId { round: 1, trajectory: 1 }, bytes_max);
        events.iter().for_each(|event| committed.see(event).unwrap());
        committed.into_text("run_x")
    }

    #[test]
    fn the_steps_are_those_that_stayed() {
        let events = [
            br#"{"event":"started"}"#.to_vec(),
            step(1, 1, 0, "a", "proceed", 0.0),
            step(1, 0, 0, "other", "proceed", 0.0),
            step(1, 1, 1, "b", "proceed", 0.0),
            step(1, 1, 2, "wrong", "backtrack", 1.0),
            step(1, 1, 2, "almost", "retry", 0.2),
            step(1, 1, 1, "c", "proceed", 0.0),
            step(1, 1, 2, "d", "proceed", 0.0),
        ];

        assert_eq!(text(1_000, &events), "a\nc\nd");
        assert_eq!(text(1, &events), "a\n(3 steps in all: GET /v1/runs/run_x/trace)");
        assert_eq!(text(0, &events[..2]), "(1 steps in all: GET /v1/runs/run_x/trace)");
    }

    #[test]
    fn room_that_a_pop_makes_is_used_again() {
        let events = [
            step(1, 1, 0, "aaaa", "proceed", 0.0),
            step(1, 1, 1, "bbbb", "proceed", 0.0),
            step(1, 1, 1, "c", "proceed", 0.0),
        ];
        assert_eq!(text(6, &events), "aaaa\nc");
    }

    #[test]
    fn derivations_stand_before_their_actions() {
        let event = json!({
            "event": "step", "round": 1, "trajectory": 1, "depth": 0, "action": "a", "derivation": "1 + 1 = 2",
            "applicable": true, "score": 0.0, "violations": [], "decision": "proceed", "elapsed_ms": 1,
        });
        assert_eq!(text(100, &[event.to_string().into_bytes()]), "1 + 1 = 2\na");

        let mut thought = event;
        thought["reasoning"] = json!("hm");
        assert_eq!(text(100, &[thought.to_string().into_bytes()]), "hm\n1 + 1 = 2\na");
    }

    #[test]
    fn steps_are_streamed_as_they_are_committed() {
        let mut reasoning = ReasoningStream::new();
        for (event, expected) in [
            (br#"{"event":"started"}"#.to_vec(), None),
            (step(1, 0, 0, "a", "proceed", 0.0), Some("a\n")),
            (step(1, 1, 0, "x", "proceed", 0.0), None),
            (step(1, 0, 1, "b", "proceed", 0.0), Some("b\n")),
            (step(1, 0, 2, "wrong", "backtrack", 1.0), None),
            (step(1, 0, 1, "c", "backtrack", 1.0), Some("(back to step 1)\n")),
            (step(1, 0, 1, "d", "proceed", 0.0), Some("d\n")),
            (step(1, 0, 0, "e", "proceed", 0.0), Some("(back to step 0)\ne\n")),
            (ended(1, 0, &json!(1)), None),
            (step(2, 0, 0, "f", "proceed", 0.0), Some("(round 2)\nf\n")),
        ] {
            assert_eq!(
                reasoning.delta(&event).unwrap().as_deref(),
                expected,
                "{}",
                String::from_utf8_lossy(&event)
            );
        }

        assert!(reasoning.delta(br#"{"event":"step","round":1}"#).is_err());
    }
}
