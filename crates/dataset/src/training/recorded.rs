//! Preference pairs from the trace of a run: two lines that were proposed in the same state, of which the verifier let one
//! pass and found fault with the other.

use std::collections::BTreeMap;

use prime_bench::tasks::{self, Difficulty, Problem};
use prime_lessons::compact;
use serde::Deserialize;
use serde_json::Value;

/// The pairs of a run.
pub struct Recorded {
    pub run: String,
    pub pairs: Vec<Pair>,
}

/// What a run's verifier preferred to what.
pub struct Pair {
    pub task: &'static str,
    pub difficulty: Option<Difficulty>,
    pub prompt: String,
    pub chosen: String,
    pub rejected: String,
    /// V of the rejected line, in tenths.
    pub tenths: u32,
}

/// Why a trace gives no pairs.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("line {line} is no event of a trace: {error}: give what `prime-agents runs trace` writes")]
    Line { line: usize, error: serde_json::Error },
    #[error("there is no event `accepted`: give a whole trace, as `prime-agents runs trace` writes it")]
    Headless,
    #[error("its run is of a problem of a client's own, which has no one-line prompt: leave it out")]
    Custom,
    #[error("its steps have no states: write it again without --no-states")]
    Stateless,
    #[error("{0}: it was written by another version")]
    Input(String),
}

#[derive(Deserialize)]
struct Spec {
    task: String,
    instance: String,
    input: Value,
}

#[derive(Deserialize)]
struct Step {
    action: String,
    #[serde(default)]
    derivation: String,
    applicable: bool,
    score: f64,
    state: Option<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Accepted {
        run: String,
        spec: Spec,
    },
    Step(Step),
    #[serde(other)]
    Other,
}

impl Step {
    fn completion(&self) -> String {
        if self.derivation.is_empty() { self.action.clone() } else { format!("{}\n{}", self.derivation, self.action) }
    }

    fn is_clean(&self) -> bool {
        self.applicable && self.score == 0.0
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "V is a sum of a few weights")]
    fn tenths(&self) -> u32 {
        (self.score * 10.0).round().max(0.0) as u32
    }
}

/// The pairs of a trace (JSON Lines): for each state, the first clean line against each faulty one.
///
/// # Errors
/// [`TraceError`].
pub fn read_trace(text: &str) -> Result<Recorded, TraceError> {
    let mut head = None;
    let mut by_state: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let event = serde_json::from_str(line).map_err(|error| TraceError::Line { line: place + 1, error })?;
        match event {
            Event::Accepted { run, spec } => head = Some((run, spec)),
            Event::Step(step) if step.action.is_empty() => {}
            Event::Step(step) => {
                let state = step.state.as_ref().ok_or(TraceError::Stateless)?.to_string();
                by_state.entry(state).or_default().push(step);
            }
            Event::Other => {}
        }
    }
    let (run, spec) = head.ok_or(TraceError::Headless)?;
    let task = tasks::find(&spec.task).map_err(|_| TraceError::Custom)?;
    let problem = task.read_input(&spec.input).map_err(|error| TraceError::Input(error.detail))?;
    let difficulty = spec.instance.split('/').nth(1).and_then(|level| level.parse().ok());
    let mut pairs = Vec::new();
    for steps in by_state.values() {
        let Some(clean) = steps.iter().find(|step| step.is_clean()) else { continue };
        let mut rejected: Vec<&str> = Vec::new();
        for faulty in steps.iter().filter(|step| !step.is_clean()) {
            if rejected.contains(&faulty.action.as_str()) {
                continue;
            }
            rejected.push(&faulty.action);
            pairs.push(Pair {
                task: task.spec().slug,
                difficulty,
                prompt: prompt(problem.as_ref(), clean)?,
                chosen: clean.completion(),
                rejected: faulty.completion(),
                tenths: faulty.tenths(),
            });
        }
    }
    Ok(Recorded { run, pairs })
}

fn prompt(problem: &dyn Problem, step: &Step) -> Result<String, TraceError> {
    let state = step.state.as_ref().ok_or(TraceError::Stateless)?;
    let machine = problem.machine_at(state).map_err(|error| TraceError::Input(error.detail))?;
    Ok(compact(machine.as_ref()))
}
