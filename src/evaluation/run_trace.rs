//! The lines of a run's trajectories, and where its time went, from its events.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use prime_protocol::{Decision, End, Role, TurnId, Usage};
use prime_report::Refusals;
use prime_runtime::{Event, Observer, Stage, StageTimes};

/// Milliseconds of a run, summed over its concurrent turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Times {
    pub executor_ms: f64,
    pub verifier_ms: f64,
    pub coordinator_ms: f64,
    /// Between agents, time in mailboxes included.
    pub between_ms: f64,
}

impl Times {
    fn add(&mut self, times: &StageTimes) {
        for stage in Stage::ALL {
            let ms = times.of(stage).as_secs_f64() * 1e3;
            match stage {
                Stage::Work(Role::Executor) => self.executor_ms += ms,
                Stage::Work(Role::Verifier) => self.verifier_ms += ms,
                Stage::Work(Role::Coordinator) => self.coordinator_ms += ms,
                Stage::To(_) | Stage::Home => self.between_ms += ms,
            }
        }
    }
}

#[derive(Default)]
struct Trajectory {
    /// Committed lines.
    lines: Vec<Box<str>>,
    answer: Option<Value>,
    /// Depth of the last proposal, if it was retried.
    retried_at: Option<usize>,
}

impl Trajectory {
    /// Adds a judged proposal at a depth. Returns whether it is the first retry of its step.
    fn step(&mut self, depth: usize, line: &str, decision: Decision) -> bool {
        // Popped states took their lines with them.
        self.lines.truncate(depth);

        match decision {
            Decision::Proceed => {
                self.lines.push(line.into());
                self.retried_at = None;
                false
            }
            Decision::Retry => self.retried_at.replace(depth) != Some(depth),
            Decision::Backtrack => {
                self.retried_at = None;
                false
            }
        }
    }
}

#[derive(Default)]
struct Seen {
    trajectories: BTreeMap<(u32, u32), Trajectory>,
    /// The lines that votes chose, by round.
    chosen: BTreeMap<u32, Vec<Box<str>>>,
    steps_retried: u64,
    /// Lines that each constraint refused.
    refusals: Refusals,
    times: Times,
    /// What was spent so far.
    usage: Usage,
    /// Σ ln p of the proposed tokens, and their number.
    logprobs: (f64, u64),
    ballots: Ballots,
    /// The answer that the run would have given, from this usage on.
    leaders: Vec<(Usage, Value)>,
}

/// The answers of the trajectories of a round that have ended.
#[derive(Default)]
struct Ballots {
    round: u32,
    /// Answers in the order in which they were first given.
    votes: Vec<(Value, u32)>,
}

impl Ballots {
    /// Counts an answer; returns the one with most votes; in a tie, the one that was given first.
    fn add(&mut self, round: u32, answer: &Value) -> Value {
        if self.round != round {
            *self = Self { round, votes: Vec::new() };
        }
        match self.votes.iter_mut().find(|(known, _)| known == answer) {
            Some((_, votes)) => *votes += 1,
            None => self.votes.push((answer.clone(), 1)),
        }
        let leader = self.votes.iter().rev().max_by_key(|(_, votes)| *votes);
        leader.map_or_else(|| answer.clone(), |(leader, _)| leader.clone())
    }
}

/// The fields of a line of a daemon's trace that are used here.
#[derive(Deserialize)]
pub struct TraceEvent {
    event: String,
    #[serde(default)]
    round: u32,
    #[serde(default)]
    trajectory: u32,
    #[serde(default)]
    depth: usize,
    action: Option<String>,
    decision: Option<Decision>,
    #[serde(default)]
    violations: Vec<String>,
    answer: Option<Value>,
}

impl Seen {
    /// Notes the answer that the run would give now.
    fn lead(&mut self, leader: Value) {
        if self.leaders.last().is_none_or(|(_, before)| *before != leader) {
            self.leaders.push((self.usage, leader));
        }
    }

    /// Counts the constraints that refused a line.
    fn refuse<'n>(&mut self, decision: Decision, violations: impl Iterator<Item = &'n str>) {
        if decision != Decision::Proceed {
            self.refusals.count(violations);
        }
    }

    /// Adds a line that a vote chose.
    fn choose(&mut self, round: u32, depth: usize, action: &str) {
        let lines = self.chosen.entry(round).or_default();
        lines.truncate(depth);
        lines.push(action.into());
    }
}

/// Collects the events of one run.
#[derive(Default)]
pub struct RunTrace(Mutex<Seen>);

impl RunTrace {
    fn seen<T>(&self, read: impl FnOnce(&mut Seen) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads a line of a recorded trace; ignores other events.
    pub fn read_line(&self, line: &TraceEvent) {
        let key = (line.round, line.trajectory);
        self.seen(|seen| match (line.event.as_str(), &line.action, line.decision) {
            ("step", Some(action), Some(decision)) => {
                let is_first_retry =
                    seen.trajectories.entry(key).or_default().step(line.depth, action, decision);
                seen.steps_retried += u64::from(is_first_retry);
                seen.refuse(decision, line.violations.iter().map(String::as_str));
            }
            ("trajectory_ended", ..) if line.answer.is_some() => {
                seen.trajectories.entry(key).or_default().answer.clone_from(&line.answer);
            }
            ("chosen", Some(action), None) => seen.choose(line.round, line.depth, action),
            _ => {}
        });
    }

    /// The answers that the run would have given, each from what was spent by then on: the one that
    /// most of the trajectories that had ended in its round gave, or that a vote chose.
    pub fn leaders(&self) -> Vec<(Usage, Value)> {
        self.seen(|seen| seen.leaders.clone())
    }

    /// The mean ln p of the proposed tokens; `None` where no proposal came with them.
    pub fn mean_logprob(&self) -> Option<f64> {
        let (sum, count) = self.seen(|seen| seen.logprobs);
        (count > 0).then(|| sum / count as f64)
    }

    /// Steps that were retried at least once, over all trajectories.
    pub fn steps_retried(&self) -> u64 {
        self.seen(|seen| seen.steps_retried)
    }

    /// How many lines each constraint refused, over all trajectories.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        self.seen(|seen| seen.refusals.by_name().clone())
    }

    pub fn times(&self) -> Times {
        self.seen(|seen| seen.times)
    }

    /// The lines of the last trajectory that gave this answer or, without an answer, of the deepest
    /// one. `None` if there are none, as where steps were chosen by vote from several trajectories.
    pub fn lines_for(&self, answer: Option<&Value>) -> Option<Vec<Box<str>>> {
        self.seen(|seen| {
            let trajectories = seen.trajectories.values();

            let found = match answer {
                Some(answer) => {
                    trajectories.rev().find(|trajectory| trajectory.answer.as_ref() == Some(answer))
                }
                None => trajectories.max_by_key(|trajectory| trajectory.lines.len()),
            };

            found.map(|trajectory| trajectory.lines.clone()).filter(|lines| !lines.is_empty())
        })
    }

    /// The different traces that gave this answer, the last one first; where a vote chose the
    /// steps, those that it chose in each round.
    pub fn traces_for(&self, answer: &Value) -> Vec<Vec<Box<str>>> {
        self.seen(|seen| {
            let gave = seen.trajectories.values().rev();
            let gave = gave.filter(|trajectory| trajectory.answer.as_ref() == Some(answer));
            let lines = gave.map(|trajectory| &trajectory.lines);

            let mut traces: Vec<Vec<Box<str>>> = Vec::new();
            for lines in lines.chain(seen.chosen.values().rev()) {
                if !lines.is_empty() && !traces.contains(lines) {
                    traces.push(lines.clone());
                }
            }
            traces
        })
    }
}

impl Observer for RunTrace {
    fn observe(&self, event: &Event<'_>) {
        self.seen(|seen| match event {
            Event::Step {
                id: TurnId { round, trajectory },
                depth,
                proposal,
                verdict,
                decision,
                usage,
                timing,
                ..
            } => {
                seen.usage.add(*usage);
                let sum: f64 = proposal.logprobs.iter().copied().map(f64::from).sum();
                seen.logprobs.0 += sum;
                seen.logprobs.1 += proposal.logprobs.len() as u64;
                if let Some(timing) = timing {
                    seen.times.add(timing);
                }

                let trajectory = seen.trajectories.entry((*round, *trajectory)).or_default();
                let is_first_retry = trajectory.step(*depth, &proposal.line, *decision);
                seen.steps_retried += u64::from(is_first_retry);
                seen.refuse(*decision, verdict.violations.iter().map(AsRef::as_ref));
            }
            Event::TrajectoryEnded {
                id: TurnId { round, trajectory },
                end: End::Answered(answer),
                ..
            } => {
                seen.trajectories.entry((*round, *trajectory)).or_default().answer =
                    Some(answer.clone());
                let leader = seen.ballots.add(*round, answer);
                seen.lead(leader);
            }
            Event::TurnFailed { usage, .. } => seen.usage.add(*usage),
            Event::Voted { winner: Some(winner), .. } => seen.lead(winner.answer.clone()),
            Event::Finished(outcome) => {
                seen.usage = outcome.usage;
                if let Some(answer) = &outcome.answer {
                    seen.lead(answer.clone());
                }
            }
            Event::Chosen { round, chosen } => seen.choose(*round, chosen.depth, &chosen.action),
            _ => {}
        });
    }

    fn wants_timing(&self) -> bool {
        true
    }
}
