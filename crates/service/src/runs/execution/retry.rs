//! Retries: a new run of the same request that knows from its first step what was rejected in
//! another, and does not propose it again.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::new_run::{Accepted, NewRun};
use crate::requests::ChosenBudget;
use crate::runs::approvals::policy::ApprovalPolicy;
use crate::runs::error::RunError;
use crate::runs::progress::Progress;
use crate::runs::record::Status;
use crate::runs::service::Runs;
use crate::runs::spec::RunSpec;
use crate::runs::store::replay::{NotReplayed, apply};
use prime_agent_set::task_program::TaskPrograms;
use prime_bench::tasks::Problem;
use prime_journal::{FlaggedEvent, IdempotencyKey, Journal, JournalError, Segment};
use prime_protocol::{Decision, Learnt, Rejection, Replay, StuckAt};
use prime_report::{RecordedEvent, StepLine, count};

/// Bytes of events per read.
const READ_BYTES: usize = 4 << 20;
/// How the note begins that says what a run tries again.
const NOTE: &str = "tries again: ";

/// How to try a run again.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// The seed of the new run; another one than before by default.
    pub seed: Option<u64>,
    /// True to leave out nothing of what was rejected: a plain repetition with another seed.
    pub keep_rejected: bool,
    /// True to try again what is verified.
    pub force: bool,
    /// The spec of the run with other agents; its own by default.
    pub spec_with_agents: Option<RunSpec>,
    /// Limits of the new run; those that are not named are the run's.
    pub budget: ChosenBudget,
}

/// The line that a step's verdict rules out at its state; `None` if it rules out none.
fn ruled_out(step: &StepLine<'_>) -> Option<Rejection> {
    let is_wrong = step.decision == Decision::Backtrack || !step.applicable;
    (is_wrong && !step.action.is_empty())
        .then(|| Rejection::new(&step.action, step.feedback.as_deref()))
}

/// Flagged events in a page.
const FLAGS: u32 = 1_000;

/// The numbers of the steps that a person has found right.
fn accepted(journal: &dyn Journal, id: &str) -> Result<BTreeSet<u64>, JournalError> {
    let (mut accepted, mut last) = (BTreeSet::new(), 0);
    loop {
        let page = journal.reviews(id, last, FLAGS)?;
        let Some(next) = page.last().map(|flagged| flagged.seq) else { return Ok(accepted) };
        // The newest review counts.
        let is_accepted = |flagged: &&FlaggedEvent| {
            flagged.reviews.last().is_some_and(|review| !review.is_rejected)
        };
        accepted.extend(page.iter().filter(is_accepted).map(|flagged| flagged.seq));
        last = next;
    }
}

/// The run's problem, and what was rejected in it, state by state.
fn learnt(
    journal: &dyn Journal,
    tasks: &TaskPrograms,
    id: &str,
    spec: &RunSpec,
) -> Result<(Arc<dyn Problem>, Vec<StuckAt>), NotReplayed> {
    let problem = spec.problem(tasks)?;
    let mut replay = Replay::new(Arc::clone(&problem), spec.plan.clone());
    let accepted = accepted(journal, id)?;
    let (mut learnt, mut progress) = (Learnt::after(&spec.plan.learnt), Progress::default());
    let mut seq = 0;
    loop {
        let segments = journal.segments(id, seq, READ_BYTES)?;
        if segments.is_empty() {
            return Ok((problem, learnt.finish()));
        }
        for (at, event) in segments.iter().flat_map(Segment::events).filter(|(at, _)| *at > seq) {
            let recorded =
                RecordedEvent::read(event).map_err(|error| format!("event {at}: {error}"))?;
            let step = match &recorded {
                RecordedEvent::Step(step) => Some((step.id(), ruled_out(step))),
                _ => None,
            };
            // The state is that before the event, and what is a dead end shows after it.
            if let Some((turn, Some(line))) = &step
                && let Some(trajectory) = replay.trajectory(*turn)
            {
                if accepted.contains(&at) {
                    learnt.lift(trajectory, &line.line);
                } else {
                    learnt.add(trajectory, Some(line.clone()));
                }
            }
            apply(&mut replay, event, &mut progress)?;
            if let Some((turn, Some(_))) = step
                && let Some(trajectory) = replay.trajectory(turn)
            {
                learnt.add(trajectory, None);
            }
        }
        seq = segments.last().map_or(seq, Segment::last_seq);
    }
}

/// What the new run says about its origin.
fn note(id: &str, learnt: &[StuckAt], is_plain: bool) -> String {
    let lines = learnt.iter().map(|known| known.rejected.len() as u64).sum();
    let (lines, states) = (count(lines, "line"), count(learnt.len() as u64, "state"));
    match (is_plain, learnt.is_empty()) {
        (true, _) => format!("{NOTE}{id}, with another seed; what was rejected there may return"),
        (false, true) => format!("{NOTE}{id}, in which no line was rejected"),
        (false, false) => {
            format!("{NOTE}{id}, without {lines} that had been rejected there, at {states}")
        }
    }
}

impl Runs {
    /// Tries a run again: the same problem, plan and agents, another seed, and none of the lines
    /// that were rejected, each at its state.
    ///
    /// # Errors
    /// The run is not over, is verified and not forced, or cannot be replayed here, unless nothing
    /// of it is left out; or as for a new run.
    pub async fn retry(
        &self,
        id: &str,
        wanted: Retry,
        owner: &str,
        key: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunError> {
        if let Some(key) = &key
            && let Some(accepted) = self.repeated(owner, key).await?
        {
            return Ok(accepted);
        }
        let (_, record) = self.reader().get(id).await?;
        if !record.status.is_over() {
            return Err(RunError::NotOver(id.to_owned()));
        }
        if record.status == Status::Verified && !wanted.force {
            return Err(RunError::Verified(id.to_owned()));
        }
        self.has_room(owner)?;

        let (recorded, tasks) = self.store().spec_and_tasks(id).await?;
        let verifier = &recorded.agents.verifier;
        // What one verifier rejects binds no other.
        let is_judged_anew =
            wanted.spec_with_agents.as_ref().is_some_and(|spec| spec.agents.verifier != *verifier);
        let is_plain = wanted.keep_rejected || is_judged_anew;
        let (name, of) = (id.to_owned(), recorded.clone());
        let begin = move |journal: &dyn Journal| {
            // A plain repetition needs no state of the run, which another program may not reach.
            let begun = if is_plain {
                of.problem(&tasks).map(|problem| (problem, Vec::new())).map_err(NotReplayed::from)
            } else {
                learnt(journal, &tasks, &name, &of)
            };
            Ok(begun.map(|(problem, learnt)| (problem, learnt, of.program_here(&tasks))))
        };
        let (problem, learnt, program) = self.store().read(begin).await??;

        let mut spec = wanted.spec_with_agents.unwrap_or(recorded);
        spec.program = program;
        // The daemon's own rule is that of all runs.
        spec.approval = ApprovalPolicy::of(&self.app().settings().run).or(spec.approval);
        // What another origin or other agents have left does not hold for this run.
        spec.notes.retain(|note| !note.starts_with(NOTE) && !note.starts_with("forked: "));
        spec.notes.push(note(id, &learnt, is_plain));
        let now_ms = self.store().now_ms();
        let priority_max = self.app().settings().priority_max_of(owner);
        let (queueing, passed) = spec.queueing.again(now_ms, priority_max);
        spec.queueing = queueing;
        spec.notes.extend(passed.map(|passed| format!("{NOTE}{passed}")));
        spec.plan.learnt = learnt;
        wanted.budget.apply(&mut spec.plan.budget);
        // Seeds of requests have 63 bits.
        spec.sampling.seed = wanted.seed.unwrap_or_else(|| rand::random::<u64>() >> 1);
        (spec.forked_from, spec.retry_of) = (None, Some(id.to_owned()));
        (spec.split, spec.traceparent) = (None, None);
        self.accept(NewRun { owner: owner.to_owned(), key, spec, problem }).await
    }
}
