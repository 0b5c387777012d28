//! Gives an agent its turns, one after another, given up amid, and from two threads, and looks at what it does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::time::timeout;

use super::Demands;
use super::finding::{Finding, Findings, Rule};
use super::turns::{Turn, turns};
use crate::agents::AgentError;
use prime_bench::tasks::Kinds;
use prime_protocol::Role;

/// How long a turn is under way before it is given up. Long enough for a request to be sent.
const UNDER_WAY: Duration = Duration::from_millis(20);
/// Turns from each of two threads.
const CONCURRENT_TURNS: usize = 8;

/// An agent of some role.
#[async_trait]
pub(super) trait Subject: Send + Sync + 'static {
    const ROLE: Role;
    type Answer: Send;

    async fn turn(&self, turn: &Turn) -> Result<Self::Answer, AgentError>;

    /// Looks at an answer.
    fn check(turn: &Turn, answer: &Self::Answer, demands: &Demands, findings: &mut Findings);
}

/// How a turn went. What is wrong with it is noted by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Answered,
    Refused,
    Panicked,
    /// The agent hangs: nothing more can be learnt.
    Unanswered,
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

async fn take<S: Subject>(agent: &S, turn: &Turn, demands: &Demands, findings: &mut Findings) -> Went {
    let work = AssertUnwindSafe(async { agent.turn(turn).await }).catch_unwind();
    match timeout(demands.within, work).await {
        Err(_) => {
            findings.note(Rule::Answers, &turn.name, format!("there was no answer within {:?}", demands.within));
            Went::Unanswered
        }
        Ok(Err(panic)) => {
            findings.note(Rule::NoPanic, &turn.name, format!("it panicked: {}", panic_text(panic.as_ref())));
            Went::Panicked
        }
        Ok(Ok(Err(error))) => {
            check_error::<S>(turn, &error, findings);
            Went::Refused
        }
        Ok(Ok(Ok(answer))) => {
            S::check(turn, &answer, demands, findings);
            Went::Answered
        }
    }
}

fn check_error<S: Subject>(turn: &Turn, error: &AgentError, findings: &mut Findings) {
    if !error.agent.starts_with(S::ROLE.name()) {
        let detail = format!("the error is of {:?}; begin with the role, as in {} `name`", error.agent, S::ROLE);
        findings.note(Rule::NamedError, &turn.name, detail);
    }
    if error.reason.trim().is_empty() {
        findings.note(Rule::NamedError, &turn.name, "the error gives no reason");
    }
}

/// All of a trajectory that an agent could have changed.
fn print(turn: &Turn) -> impl PartialEq + use<> {
    let trajectory = &turn.trajectory;
    let (notes, top) = trajectory.stack.notes();
    let stack = (notes.to_vec(), top.clone(), trajectory.stack.lines().map(str::to_owned).collect::<Vec<_>>());
    (trajectory.state(), stack, trajectory.machine.state(), trajectory.machine.violations(Kinds::ALL))
}

/// Takes all turns. Returns how each went, and whether the agent hangs.
async fn in_order<S: Subject>(agent: &S, turns: &[Turn], demands: &Demands, findings: &mut Findings) -> Vec<Went> {
    let mut all = Vec::new();
    for turn in turns {
        let before = print(turn);
        let went = take(agent, turn, demands, findings).await;
        if print(turn) != before {
            findings.note(Rule::Untouched, &turn.name, "the trajectory is another one than before");
        }
        all.push(went);
        if went == Went::Unanswered {
            break;
        }
    }
    all
}

/// Gives turns up, before and after they are under way.
async fn given_up<S: Subject>(agent: &S, turn: &Turn, demands: &Demands, findings: &mut Findings) {
    for wait in [None, Some(UNDER_WAY), None] {
        let work = AssertUnwindSafe(async { agent.turn(turn).await }).catch_unwind();
        let panicked = match wait {
            None => work.now_or_never().is_some_and(|result| result.is_err()),
            Some(wait) => timeout(wait, work).await.is_ok_and(|result| result.is_err()),
        };
        if panicked {
            findings.note(Rule::NoPanic, &turn.name, "it panicked in a turn that was to be given up");
        }
    }
    let mut after = Findings::default();
    let went = take(agent, turn, demands, &mut after).await;
    if went != Went::Answered {
        let detail = format!("after turns that were given up, this one {}", worded(went));
        findings.note(Rule::UsableAfterDrop, &turn.name, detail);
    }
    findings.add(after);
}

fn worded(went: Went) -> &'static str {
    match went {
        Went::Answered => "is answered",
        Went::Refused => "is an error, and was none before",
        Went::Panicked => "panics, and did not before",
        Went::Unanswered => "is not answered",
    }
}

/// The first turns again, on a thread with a runtime of its own, as cells have.
fn on_a_thread<S: Subject>(agent: &S, demands: &Demands) -> (Findings, Vec<Went>) {
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return (findings, Vec::new()) };
    let turns = turns(S::ROLE);
    let first = &turns[..CONCURRENT_TURNS.min(turns.len())];
    let went = runtime.block_on(in_order(agent, first, demands, &mut findings));
    (findings, went)
}

async fn concurrently<S: Subject>(
    agent: &Arc<S>,
    turns: &[Turn],
    alone: &[Went],
    demands: &Demands,
    findings: &mut Findings,
) {
    let threads = [(); 2].map(|()| {
        let (agent, demands) = (Arc::clone(agent), demands.clone());
        tokio::task::spawn_blocking(move || on_a_thread(agent.as_ref(), &demands))
    });
    for thread in threads {
        let Ok((found, went)) = thread.await else {
            findings.note(Rule::Concurrent, "two threads", "one of them panicked outside of a turn");
            continue;
        };
        findings.add(found);
        for ((turn, alone), went) in turns.iter().zip(alone).zip(went) {
            if *alone == Went::Answered && went != Went::Answered {
                let detail = format!("used from two threads, this turn {}", worded(went));
                findings.note(Rule::Concurrent, &turn.name, detail);
            }
        }
    }
}

/// Drives an agent through everything.
pub(super) async fn drive<S: Subject>(agent: S, demands: &Demands) -> Vec<Finding> {
    let agent = Arc::new(agent);
    let turns = turns(S::ROLE);
    let mut findings = Findings::default();
    let went = in_order(agent.as_ref(), &turns, demands, &mut findings).await;
    if went.last() == Some(&Went::Unanswered) {
        return findings.into_vec();
    }
    // An agent that never answers has nothing to lose.
    let answered = turns.iter().zip(&went).find(|(_, went)| **went == Went::Answered);
    if let Some((turn, _)) = answered {
        given_up(agent.as_ref(), turn, demands, &mut findings).await;
    }
    concurrently(&agent, &turns, &went, demands, &mut findings).await;
    findings.into_vec()
}
