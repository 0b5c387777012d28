//! Preference pairs from the trace of a run: two lines proposed in the same state, one of which its
//! verifier preferred.

use std::collections::BTreeMap;

use prime_bench::tasks::{self, Difficulty, Problem};
use prime_lessons::compact;
use serde::Deserialize;
use serde_json::Value;

/// The pairs of a run.
pub struct Recorded {
    /// The id of the run.
    pub run: String,
    /// Its pairs, in the order of its states.
    pub pairs: Vec<Pair>,
}

/// Two lines of a run, one of which its verifier preferred.
pub struct Pair {
    /// The slug of the task.
    pub task: &'static str,
    /// The level; `None` where the run had an input of its own.
    pub difficulty: Option<Difficulty>,
    /// The prompt, in the one-line form of small models.
    pub prompt: String,
    /// The completion with the preferred line.
    pub chosen: String,
    /// The completion with the other line.
    pub rejected: String,
    /// V of the rejected line, in tenths.
    pub tenths: u32,
    /// The scores that the preference rests on.
    pub scores: [f64; 2],
}

/// What makes one line better than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preference {
    /// The verifier let it pass, and found fault with the other line. The score is −V.
    Verdict,
    /// RLAIF (eq. 12 of the paper): its score is higher by at least `margin`. The score is −V, the
    /// mean of the line's verdicts, plus `consistency` times the line's share of the proposals in
    /// its state. It distinguishes faults, and needs no clean line.
    Score {
        /// Least difference of the two scores, above 0.
        margin: f64,
        /// Weight of the line's share, 0 or more.
        consistency: f64,
    },
}

/// Why a trace gives no pairs.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not an event.
    #[error(
        "line {line} is not an event of a trace: {error}: give what `prime-agents runs trace` writes"
    )]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The parser's message.
        error: serde_json::Error,
    },
    /// The trace does not begin with the event `accepted`.
    #[error(
        "there is no event `accepted`: give a whole trace, as `prime-agents runs trace` writes it"
    )]
    Headless,
    /// The run's problem is a client's own.
    #[error(
        "its run is of a problem of a client's own, which has no one-line prompt: leave it out"
    )]
    Custom,
    /// The steps of the trace have no states.
    #[error("its steps have no states: write it again without --no-states")]
    Stateless,
    /// The input cannot be read by this version; says why.
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
        if self.derivation.is_empty() {
            self.action.clone()
        } else {
            format!("{}\n{}", self.derivation, self.action)
        }
    }

    fn is_clean(&self) -> bool {
        self.applicable && self.score == 0.0
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "V is a sum of a few weights"
    )]
    fn tenths(&self) -> u32 {
        (self.score * 10.0).round().max(0.0) as u32
    }
}

/// A line that was proposed in a state.
struct Line<'s> {
    /// Its first proposal.
    step: &'s Step,
    /// Number of proposals of this line in the state.
    times: f64,
    /// Sum of V over those proposals.
    v: f64,
}

/// The lines of a state, in the order of their first proposals.
fn lines(steps: &[Step]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for step in steps {
        // The same action counts as one line, whatever was derived before it.
        match lines.iter_mut().find(|line| line.step.action == step.action) {
            Some(line) => (line.times, line.v) = (line.times + 1.0, line.v + step.score),
            None => lines.push(Line { step, times: 1.0, v: step.score }),
        }
    }
    lines
}

impl Preference {
    /// The pairs of a state: the line that is preferred, and another, each with its score.
    fn pairs(self, steps: &[Step]) -> Vec<[(&Step, f64); 2]> {
        match self {
            Self::Verdict => {
                let Some(clean) = steps.iter().find(|step| step.is_clean()) else {
                    return Vec::new();
                };

                let faulty = lines(steps).into_iter().filter_map(|line| {
                    // A line with several verdicts counts by its first fault.
                    steps.iter().find(|step| step.action == line.step.action && !step.is_clean())
                });

                let faulty = faulty.filter(|step| step.action != clean.action);
                faulty.map(|step| [(clean, 0.0), (step, 0.0 - step.score)]).collect()
            }
            Self::Score { margin, consistency } => {
                #[expect(clippy::cast_precision_loss, reason = "proposals in a state are few")]
                let all = steps.len() as f64;
                let score = |line: &Line<'_>| consistency * line.times / all - line.v / line.times;

                let mut scored: Vec<_> =
                    lines(steps).into_iter().map(|line| (line.step, score(&line))).collect();
                // Stable, so that the first of equal lines is preferred.
                scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));

                let Some((best, others)) = scored.split_first() else { return Vec::new() };
                // Sums of tenths and shares are not exact.
                let is_worse = |other: &&(&Step, f64)| best.1 - other.1 >= margin - 1e-9;
                others.iter().filter(is_worse).map(|other| [*best, *other]).collect()
            }
        }
    }
}

/// The pairs of a trace (JSON Lines): for each state, the most preferred line against each other
/// one.
///
/// # Errors
/// [`TraceError`].
pub fn read_trace(text: &str, preference: Preference) -> Result<Recorded, TraceError> {
    let mut head = None;
    let mut by_state: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let event = serde_json::from_str(line)
            .map_err(|error| TraceError::Line { line: place + 1, error })?;
        match event {
            Event::Accepted { run, spec } => head = Some((run, spec)),
            // An executor that had no line left proposed nothing.
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
    // `None` for an input that is not an instance of the benchmark.
    let difficulty = spec.instance.split('/').nth(1).and_then(|level| level.parse().ok());

    let mut pairs = Vec::new();
    for steps in by_state.values() {
        for [(chosen, better), (rejected, worse)] in preference.pairs(steps) {
            pairs.push(Pair {
                task: task.spec().slug,
                difficulty,
                prompt: prompt(problem.as_ref(), chosen)?,
                chosen: chosen.completion(),
                rejected: rejected.completion(),
                tenths: rejected.tenths(),
                scores: [better, worse],
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
