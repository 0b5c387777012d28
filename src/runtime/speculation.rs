//! Speculative proceed: a trajectory's next proposal begins before the verdict on its last one, as if that were let pass.
//! It travels with the turn, so that nobody else has it; dropped anywhere, it is given up, and its model's turn with it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::submission::RunSampling;
use super::turn::TurnBody;
use crate::agents::{AgentError, Executor, Failure, Proposal, Sampling};
use prime_protocol::{Left, Limits, Run, Strategy, Trajectory, Usage};

/// What a turn's successor can be foreseen from.
#[derive(Clone)]
pub struct Foresight {
    sampling: RunSampling,
    strategy: Strategy,
    limits: Limits,
    /// As it was before this turn.
    left: Left,
    /// Closed when the turn's round is over.
    round: watch::Receiver<()>,
}

impl Foresight {
    /// For a turn of this run that is about to be proposed; `None` where its successor is not to be begun early.
    pub fn of(run: &Run, sampling: RunSampling, round: &watch::Sender<()>) -> Option<Box<Self>> {
        let (plan, left) = (run.plan(), run.left());
        // Where all turns are gathered before one is chosen, nobody knows what comes next. The turns that are out may spend
        // what is left.
        let is_known = plan.speculate && !plan.strategy.is_lockstep() && left.steps > u64::from(run.live());
        let (strategy, limits) = (plan.strategy, plan.limits);
        is_known.then(|| Box::new(Self { sampling, strategy, limits, left, round: round.subscribe() }))
    }
}

/// What an executor was asked early.
struct Early {
    proposed: Result<Proposal, AgentError>,
    has_waited: bool,
}

/// A proposal that was begun early.
pub struct Speculation {
    executor: Arc<dyn Executor>,
    /// What it was shown.
    trajectory: Arc<Trajectory>,
    sampling: Sampling,
    early: oneshot::Receiver<Early>,
}

/// A proposal with what the next one can be begun from.
#[derive(Default)]
pub struct Proposed {
    /// One that is ready at once gains nothing from an early beginning.
    has_waited: bool,
    /// A copy of the trajectory as it is now.
    copy: Option<Arc<Trajectory>>,
}

async fn ask(executor: Arc<dyn Executor>, trajectory: Arc<Trajectory>, sampling: Sampling) -> Early {
    let (proposed, has_waited) = timed(executor.as_ref(), &trajectory, sampling).await;
    Early { proposed, has_waited }
}

/// A proposal, and whether it had to be waited for.
async fn timed(
    executor: &dyn Executor,
    trajectory: &Trajectory,
    sampling: Sampling,
) -> (Result<Proposal, AgentError>, bool) {
    let mut has_waited = false;
    let mut proposing = executor.propose(trajectory, sampling);
    let proposed = poll_fn(|context| {
        let polled = proposing.as_mut().poll(context);
        has_waited |= polled.is_pending();
        polled
    });
    (proposed.await, has_waited)
}

impl Speculation {
    fn begin(
        executor: Arc<dyn Executor>,
        trajectory: Trajectory,
        sampling: Sampling,
        mut round: watch::Receiver<()>,
    ) -> Self {
        let (mut tell, early) = oneshot::channel();
        let trajectory = Arc::new(trajectory);
        let asking = ask(Arc::clone(&executor), Arc::clone(&trajectory), sampling);
        // If it panics, nothing is told: that is as if it had not been begun.
        tokio::spawn(async move {
            let early = tokio::select! {
                biased;
                () = tell.closed() => return,
                _ = round.changed() => return,
                early = asking => early,
            };
            // Nobody may want it any more.
            drop(tell.send(early));
        });
        Self { executor, trajectory, sampling, early }
    }

    /// Whether it is what this executor would be asked now.
    fn is_for(&self, executor: &Arc<dyn Executor>, turn: &TurnBody) -> bool {
        // One that has died left a state behind that nobody should build on.
        Arc::ptr_eq(executor, &self.executor)
            && self.sampling == turn.sampling
            && turn.trajectory.shows_as(&self.trajectory)
    }

    /// Waits for the proposal. `None` where it failed.
    async fn taken(self) -> Option<(Proposal, Proposed)> {
        let Early { proposed, has_waited } = self.early.await.ok()?;
        Some((proposed.ok()?, Proposed { has_waited, copy: Some(self.trajectory) }))
    }

    /// Gives it up. What it has spent, as far as it is known: of a proposal that is given up before it is complete,
    /// nobody says.
    pub fn give_up(mut self) -> Usage {
        let early = self.early.try_recv().ok().and_then(|early| early.proposed.ok());
        early.map(|proposal| proposal.usage).unwrap_or_default()
    }
}

/// Makes the turn's proposal: the one that was begun early, where it is of use, else a new one.
///
/// # Errors
/// Those of a new proposal, or that the turn's round is over.
pub async fn propose(executor: &Arc<dyn Executor>, turn: &mut TurnBody) -> Result<Proposed, AgentError> {
    if turn.foresight.is_none() && turn.speculation.is_none() {
        turn.proposal = executor.propose(&turn.trajectory, turn.sampling).await?;
        return Ok(Proposed::default());
    }
    if turn.speculation.as_ref().is_some_and(|early| !early.is_for(executor, turn)) {
        turn.give_up_speculation();
    }
    if let Some(early) = turn.speculation.take() {
        // If this turn is lost while it waits, so is the proposal.
        turn.speculations.wasted += 1;
        if let Some((proposal, proposed)) = early.taken().await {
            turn.speculations.wasted -= 1;
            turn.speculations.used += 1;
            turn.proposal = proposal;
            return Ok(proposed);
        }
        if turn.foresight.as_ref().is_some_and(|foresight| foresight.round.has_changed().is_err()) {
            // Nobody waits for this turn any more: its model must not be asked anew.
            return Err(AgentError::new("executor", Failure::Overloaded, "the turn's round is over"));
        }
    }
    let (proposal, has_waited) = timed(executor.as_ref(), &turn.trajectory, turn.sampling).await;
    turn.proposal = proposal?;
    Ok(Proposed { has_waited, copy: None })
}

/// Begins the proposal after the one that the turn has just got, where that may be let pass and does not end anything.
pub fn look_ahead(executor: &Arc<dyn Executor>, turn: &mut TurnBody, proposed: Proposed) {
    let Some(foresight) = turn.foresight.as_deref() else { return };
    let has_tokens = foresight.left.tokens.is_none_or(|left| turn.usage().total() < left);
    if !proposed.has_waited || !turn.is_applicable || turn.is_repeated || !has_tokens {
        return;
    }
    let (line, limits) = (&turn.proposal.line, &foresight.limits);
    // A task whose own code panics does so again where the step is committed, and there it counts.
    // The task that was shown the copy is over.
    let copy = proposed.copy.and_then(Arc::into_inner);
    let foreseen = catch_unwind(AssertUnwindSafe(|| match copy {
        _ if turn.trajectory.machine.candidate_ends() => None,
        Some(copy) => copy.advanced(line, limits),
        None => turn.trajectory.foreseen(line, limits),
    }));
    if let Ok(Some(foreseen)) = foreseen {
        let sampling = foresight.sampling.of_turn(&foresight.strategy, turn.id, &foreseen);
        let round = foresight.round.clone();
        turn.speculation = Some(Box::new(Speculation::begin(Arc::clone(executor), foreseen, sampling, round)));
    }
}
