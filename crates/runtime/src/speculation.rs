//! Speculative proceed: a trajectory's next proposal starts before the verdict on the current one,
//! on the assumption that it is accepted. The proposal travels with the turn; dropping it cancels
//! the model's request.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tracing::{Instrument, Span};

use super::submission::RunSampling;
use prime_protocol::{Left, Limits, Run, Strategy, Trajectory, Usage};
use prime_roles::{AgentError, Executor, Proposal, Sampling, live};

/// What a turn needs to start its successor's proposal early.
pub struct Lookahead {
    pub sampling: RunSampling,
    pub strategy: Strategy,
    pub fanout: u32,
    pub limits: Limits,
    /// Budget left before this turn.
    pub left: Left,
    /// Closed at the end of the turn's round.
    pub round: watch::Receiver<()>,
    /// True if the executor waited for this turn's proposal; if not, an early start gains nothing.
    pub has_waited: bool,
    /// A copy of the turn's trajectory, available if its proposal was itself started early.
    pub copy: Option<Arc<Trajectory>>,
    /// Who makes the early proposal, where it has to wait for the task's program: only then is it
    /// known which state the proposal leads to.
    pub asker: Option<Asker>,
}

/// The executor of an early proposal, and where it works: on the thread of its actor, for the turn's
/// listener, whichever role's work starts it.
#[derive(Clone)]
pub struct Asker {
    executor: Arc<dyn Executor>,
    thread: Handle,
    listener: Option<live::Listener>,
    span: Span,
}

impl Asker {
    /// Call it on the executor's thread, during its work on the turn.
    pub fn here(executor: &Arc<dyn Executor>) -> Self {
        Self {
            executor: Arc::clone(executor),
            thread: Handle::current(),
            listener: live::listener(),
            span: Span::current(),
        }
    }
}

impl Lookahead {
    /// The lookahead of a turn of `run` that is about to be proposed; `None` if its successor must
    /// not start early.
    pub fn of(run: &Run, sampling: RunSampling, round: &watch::Sender<()>) -> Option<Box<Self>> {
        let (plan, left) = (run.plan(), run.left());
        // No early start if the search gathers all turns before it chooses, so that the successor
        // is not known; if the turns in flight may use up the steps that are left; or if completion
        // tokens are limited, because the successor's share is known only after this turn.
        let is_predictable = plan.speculate
            && !plan.strategy.is_synchronous()
            && left.steps > u64::from(run.live())
            && left.completion_tokens.is_none();

        let (strategy, fanout, limits) = (plan.strategy, plan.fanout, plan.limits);

        is_predictable.then(|| {
            let round = round.subscribe();
            Box::new(Self {
                sampling,
                strategy,
                fanout,
                limits,
                left,
                round,
                has_waited: false,
                copy: None,
                asker: None,
            })
        })
    }

    pub fn is_round_over(&self) -> bool {
        // Nothing is ever sent: the channel only tells that its sender was dropped.
        self.round.has_changed().is_err()
    }
}

/// A proposal, and whether the executor had to wait for it.
pub struct TimedProposal {
    pub proposed: Result<Proposal, AgentError>,
    pub has_waited: bool,
}

/// Asks the executor for a proposal.
pub async fn propose(
    executor: &dyn Executor,
    trajectory: &Trajectory,
    sampling: Sampling,
) -> TimedProposal {
    let mut has_waited = false;
    let mut proposing = pin!(executor.propose(trajectory, sampling));
    let proposed = poll_fn(|context| {
        let polled = proposing.as_mut().poll(context);
        has_waited |= polled.is_pending();
        polled
    })
    .await;
    TimedProposal { proposed, has_waited }
}

/// A proposal that was started early.
pub struct Speculation {
    executor: Arc<dyn Executor>,
    /// What the executor was shown.
    trajectory: Arc<Trajectory>,
    sampling: Sampling,
    proposal: oneshot::Receiver<TimedProposal>,
    /// What its model was sent, for the turn's listener.
    held: Option<Arc<live::Held>>,
}

impl Speculation {
    /// Asks the executor in a task of its own.
    pub fn start(
        asker: Asker,
        trajectory: Trajectory,
        sampling: Sampling,
        mut round: watch::Receiver<()>,
    ) -> Self {
        let Asker { executor, thread, listener, span } = asker;
        let (mut reply, proposal) = oneshot::channel();

        let trajectory = Arc::new(trajectory);
        let held = listener.map(live::Held::new);
        let asking = {
            let (executor, trajectory) = (Arc::clone(&executor), Arc::clone(&trajectory));
            // The turn's listener hears its next proposal, too.
            let asking = async move { propose(executor.as_ref(), &trajectory, sampling).await };
            let listener = held.clone().map(|held| held as live::Listener);
            live::within(listener, asking).instrument(span)
        };

        // If it panics, no reply is sent, as if it had not been started.
        thread.spawn(async move {
            let proposal = tokio::select! {
                biased;
                () = reply.closed() => return,
                _ = round.changed() => return,
                proposal = asking => proposal,
            };
            // The turn may have been dropped meanwhile.
            drop(reply.send(proposal));
        });

        Self { executor, trajectory, sampling, proposal, held }
    }

    /// True if this executor would now be asked exactly this.
    pub fn matches(
        &self,
        executor: &Arc<dyn Executor>,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> bool {
        // An executor that has died may have left a torn state behind.
        Arc::ptr_eq(executor, &self.executor)
            && self.sampling == sampling
            && trajectory.shows_same_as(&self.trajectory)
    }

    /// Waits for the proposal; `None` if it failed. Also returns what the executor was shown.
    pub async fn take(self) -> Option<(TimedProposal, Arc<Trajectory>)> {
        let proposal = self.proposal.await.ok()?;
        if let Some(held) = self.held {
            held.release();
        }
        Some((proposal, self.trajectory))
    }

    /// Cancels it. Returns its usage if it is complete; the usage of an incomplete proposal is
    /// unknown and counts as zero.
    pub fn discard(mut self) -> Usage {
        let proposal = self.proposal.try_recv().ok().and_then(|proposal| proposal.proposed.ok());
        proposal.map(|proposal| proposal.usage).unwrap_or_default()
    }
}
