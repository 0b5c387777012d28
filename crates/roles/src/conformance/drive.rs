//! Drives an agent: turns in sequence, cancelled turns, and turns from two threads.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::time::timeout;

use super::Requirements;
use super::finding::{Finding, Findings, Rule};
use super::turns::{Turn, turns};
use crate::AgentError;
use prime_bench::tasks::Kinds;
use prime_protocol::Role;

/// Delay before a turn is cancelled, long enough for a request to be sent.
const CANCEL_AFTER: Duration = Duration::from_millis(20);
/// Turns that each of two threads takes.
const CONCURRENT_TURNS: usize = 8;

/// An agent of some role.
#[async_trait]
pub(super) trait Subject: Send + Sync + 'static {
    const ROLE: Role;
    type Answer: Send;

    async fn turn(&self, turn: &Turn) -> Result<Self::Answer, AgentError>;

    /// Looks at an answer.
    fn check(
        turn: &Turn,
        answer: &Self::Answer,
        requirements: &Requirements,
        findings: &mut Findings,
    );
}

/// How a turn ended; findings are already recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Refused,
    Panicked,
    /// The agent hangs; the suite stops.
    TimedOut,
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

async fn take<S: Subject>(
    agent: &S,
    turn: &Turn,
    requirements: &Requirements,
    findings: &mut Findings,
) -> Outcome {
    let work = AssertUnwindSafe(async { agent.turn(turn).await }).catch_unwind();
    match timeout(requirements.timeout, work).await {
        Err(_) => {
            findings.note(
                Rule::Answers,
                &turn.name,
                format!("no answer within {:?}", requirements.timeout),
            );
            Outcome::TimedOut
        }
        Ok(Err(panic)) => {
            findings.note(
                Rule::NoPanic,
                &turn.name,
                format!("it panicked: {}", panic_text(panic.as_ref())),
            );
            Outcome::Panicked
        }
        Ok(Ok(Err(error))) => {
            check_error::<S>(turn, &error, findings);
            Outcome::Refused
        }
        Ok(Ok(Ok(answer))) => {
            S::check(turn, &answer, requirements, findings);
            Outcome::Answered
        }
    }
}

fn check_error<S: Subject>(turn: &Turn, error: &AgentError, findings: &mut Findings) {
    if !error.agent.starts_with(S::ROLE.name()) {
        let detail = format!(
            "the error names {:?}; begin with the role, as in {} `name`",
            error.agent,
            S::ROLE
        );
        findings.note(Rule::NamedError, &turn.name, detail);
    }
    if error.reason.trim().is_empty() {
        findings.note(Rule::NamedError, &turn.name, "the error gives no reason");
    }
}

/// Everything in a trajectory that an agent could modify.
fn fingerprint(turn: &Turn) -> impl PartialEq + use<> {
    let trajectory = &turn.trajectory;
    let (notes, top) = trajectory.stack.notes();
    let stack = (
        notes.to_vec(),
        top.clone(),
        trajectory.stack.lines().map(str::to_owned).collect::<Vec<_>>(),
    );

    (
        trajectory.state(),
        stack,
        trajectory.machine.state(),
        trajectory.machine.violations(Kinds::ALL),
    )
}

/// Takes all turns in order. Returns their outcomes up to the first timeout.
async fn in_order<S: Subject>(
    agent: &S,
    turns: &[Turn],
    requirements: &Requirements,
    findings: &mut Findings,
) -> Vec<Outcome> {
    let mut all = Vec::new();
    for turn in turns {
        let before = fingerprint(turn);
        let went = take(agent, turn, requirements, findings).await;

        if fingerprint(turn) != before {
            findings.note(Rule::Unmodified, &turn.name, "the trajectory was modified");
        }

        all.push(went);
        // Every later turn would probably take its whole time limit too.
        if went == Outcome::TimedOut {
            break;
        }
    }

    all
}

/// Cancels turns, some before and some after a request was sent.
async fn cancelled<S: Subject>(
    agent: &S,
    turn: &Turn,
    requirements: &Requirements,
    findings: &mut Findings,
) {
    // `None` polls the work once: a request may not even have been made then.
    for wait in [None, Some(CANCEL_AFTER), None] {
        let work = AssertUnwindSafe(async { agent.turn(turn).await }).catch_unwind();
        let panicked = match wait {
            None => work.now_or_never().is_some_and(|result| result.is_err()),
            Some(wait) => timeout(wait, work).await.is_ok_and(|result| result.is_err()),
        };
        if panicked {
            findings.note(Rule::NoPanic, &turn.name, "it panicked in a cancelled turn");
        }
    }

    let mut after = Findings::default();
    // Noted apart, so that the verdict on this turn comes before its other findings.
    let went = take(agent, turn, requirements, &mut after).await;
    if went != Outcome::Answered {
        let detail = format!("after cancelled turns, this one {}", describe(went));
        findings.note(Rule::UsableAfterCancel, &turn.name, detail);
    }
    findings.add(after);
}

fn describe(went: Outcome) -> &'static str {
    match went {
        Outcome::Answered => "is answered",
        Outcome::Refused => "fails but did not before",
        Outcome::Panicked => "panics but did not before",
        Outcome::TimedOut => "is not answered",
    }
}

/// Repeats the first turns on a thread with its own runtime, as in a cell.
fn on_a_thread<S: Subject>(agent: &S, requirements: &Requirements) -> (Findings, Vec<Outcome>) {
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // Without a runtime nothing can be tested, and the agent is not to blame.
    let Ok(runtime) = runtime else { return (findings, Vec::new()) };

    let turns = turns(S::ROLE);
    let first = &turns[..CONCURRENT_TURNS.min(turns.len())];
    let went = runtime.block_on(in_order(agent, first, requirements, &mut findings));
    (findings, went)
}

async fn concurrently<S: Subject>(
    agent: &Arc<S>,
    turns: &[Turn],
    alone: &[Outcome],
    requirements: &Requirements,
    findings: &mut Findings,
) {
    let threads = [(); 2].map(|()| {
        let (agent, requirements) = (Arc::clone(agent), requirements.clone());
        tokio::task::spawn_blocking(move || on_a_thread(agent.as_ref(), &requirements))
    });

    for thread in threads {
        let Ok((found, went)) = thread.await else {
            findings.note(Rule::Concurrent, "two threads", "a thread panicked outside a turn");
            continue;
        };

        findings.add(found);
        // A turn that fails alone too says nothing about threads.
        for ((turn, alone), went) in turns.iter().zip(alone).zip(went) {
            if *alone == Outcome::Answered && went != Outcome::Answered {
                let detail = format!("from two threads, this turn {}", describe(went));
                findings.note(Rule::Concurrent, &turn.name, detail);
            }
        }
    }
}

/// Runs the whole suite.
pub(super) async fn drive<S: Subject>(agent: S, requirements: &Requirements) -> Vec<Finding> {
    let agent = Arc::new(agent);
    let turns = turns(S::ROLE);
    let mut findings = Findings::default();
    let went = in_order(agent.as_ref(), &turns, requirements, &mut findings).await;
    // It hangs: later findings would say nothing new.
    if went.last() == Some(&Outcome::TimedOut) {
        return findings.into_vec();
    }

    // Without an answered turn there is nothing to compare with.
    let answered = turns.iter().zip(&went).find(|(_, went)| **went == Outcome::Answered);
    if let Some((turn, _)) = answered {
        cancelled(agent.as_ref(), turn, requirements, &mut findings).await;
    }

    concurrently(&agent, &turns, &went, requirements, &mut findings).await;
    findings.into_vec()
}
