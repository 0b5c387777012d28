//! The `tracing` spans of a run: `run`, and inside it one span per turn and role. Whether anybody
//! listens is checked once per run; a turn only checks whether its run has a span.

use std::sync::Arc;

use tracing::Span;
use tracing::field::Empty;

use super::submission::Submission;
use super::turn::TurnBody;
use prime_protocol::{Role, TurnId};

/// The span of a run, if a subscriber listens at level `debug`. The observer may fill in the run's
/// id.
pub fn of_run(submission: &Submission) -> Option<Arc<Span>> {
    let (task, fanout) = (submission.problem.spec().slug, submission.plan.fanout);
    let span = tracing::debug_span!("run", run = Empty, task, fanout);
    (!span.is_disabled()).then(|| {
        submission.observer.attach(&span);
        Arc::new(span)
    })
}

/// The span of a role's work on a turn, if its run has one.
#[inline]
pub fn of_work(role: Role, turn: &TurnBody) -> Option<Span> {
    turn.span.as_deref().map(|parent| child(parent, role, turn))
}

#[cold]
fn child(parent: &Span, role: Role, turn: &TurnBody) -> Span {
    let TurnId { round, trajectory } = turn.id;
    let (depth, role_name) = (turn.trajectory.stack.depth(), role.name());
    // Three macros, because a span's name must be a literal.
    match role {
        Role::Executor => {
            tracing::debug_span!(parent: parent, "propose", role = role_name, round, trajectory, depth)
        }
        Role::Verifier => {
            tracing::debug_span!(parent: parent, "verify", role = role_name, round, trajectory, depth)
        }
        Role::Coordinator => {
            tracing::debug_span!(parent: parent, "decide", role = role_name, round, trajectory, depth)
        }
    }
}
