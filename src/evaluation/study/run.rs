//! Systems that run step by step.

use std::sync::Arc;

use prime_bench::judge::{ActionList, Body, Submission, judge};
use prime_bench::tasks::{Kinds, Problem};
use prime_protocol::{Ending, Outcome};
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Record, Status};
use tokio::time::Instant;

use super::RuntimeEnded;
use super::run_trace::{RunTrace, Times};
use crate::evaluation::comparison::{MakePlan, System, steps_budget};
use crate::runtime::{RunSampling, Runtime, RuntimePlan, Submission as RunSubmission};

/// Concurrent turns of a cell. The runs at a time limit them, so that no run queues before the engine on the clock of
/// its budget.
const TURNS_IN_FLIGHT: u32 = 4_096;

/// A running system.
pub struct RunSystem {
    runtime: Runtime,
    plan: MakePlan,
    sampling: RunSampling,
    /// Proposals of a run; follows from the reference's steps without it.
    steps_max: Option<u64>,
}

impl RunSystem {
    /// Starts its actors. Must be called within an actix system.
    pub fn start(system: System, runtime: &RuntimePlan, steps_max: Option<u64>) -> Self {
        let System { agents, plan, sampling } = system;
        let runtime = RuntimePlan { in_flight_max: TURNS_IN_FLIGHT, ..runtime.clone() };
        Self { runtime: Runtime::start(&runtime, agents), plan, sampling, steps_max }
    }

    pub(super) async fn run(&self, run: &AskedRun, study: &Study, record: Record) -> Result<Record, RuntimeEnded> {
        let problem = run.instance().problem();
        let mut plan = (self.plan)(problem.as_ref());
        let budget = steps_budget(&plan, problem.reference().steps);
        plan.budget.steps = self.steps_max.unwrap_or(budget);
        let trace = Arc::new(RunTrace::default());
        let submission = RunSubmission {
            problem: Arc::clone(&problem),
            plan,
            sampling: RunSampling { seed: run.sampling_seed(study), ..self.sampling },
            observer: trace.clone(),
            suspended: None,
        };
        let started = Instant::now();
        let outcome = self.runtime.submit(submission).outcome().await.ok_or(RuntimeEnded)?;
        let wall_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(recorded(run, problem.as_ref(), &outcome, &trace, Record { wall_ms, ..record }))
    }
}

/// Completes the record of a run that has ended.
fn recorded(run: &AskedRun, problem: &dyn Problem, outcome: &Outcome, trace: &RunTrace, mut record: Record) -> Record {
    record.set_problem(problem);
    record.steps = outcome.steps;
    record.proposals = outcome.proposals;
    record.retries = outcome.retries;
    record.steps_retried = Some(trace.steps_retried());
    record.backtracks = outcome.backtracks;
    record.pops = outcome.pops;
    record.rounds = outcome.rounds;
    record.trajectories = outcome.trajectories;
    record.prompt_tokens = outcome.usage.prompt;
    record.completion_tokens = outcome.usage.completion;
    set_times(&mut record, trace.times());
    record.failure = match &outcome.ending {
        Ending::Agreed => None,
        Ending::AgentFailed(reason) => Some(reason.clone()),
        ending => outcome.answer.is_none().then(|| ending.name().to_owned()),
    };
    if matches!(outcome.ending, Ending::AgentFailed(_)) {
        record.reference_steps = problem.reference().steps;
        return record;
    }
    record.status = Status::Measured;
    record.verified = outcome.verified;
    record.agreement = outcome.answer.is_some().then_some(outcome.agreement);
    record.votes = outcome.votes.first().map(|ballot| ballot.votes);
    record.answer = outcome.answer.as_ref().map(ToString::to_string);
    let lines: Option<ActionList> =
        trace.lines_for(outcome.answer.as_ref()).map(|lines| lines.iter().map(|line| &**line).collect());
    let body = Body::Structured { actions: lines, answer: outcome.answer.clone() };
    record.set_judgement(&judge(&Submission { id: run.instance(), body }, Kinds::ALL));
    record
}

fn set_times(record: &mut Record, times: Times) {
    record.executor_ms = Some(times.executor_ms);
    record.verifier_ms = Some(times.verifier_ms);
    record.coordinator_ms = Some(times.coordinator_ms);
    let work = times.executor_ms + times.verifier_ms + times.coordinator_ms;
    let all = work + times.between_ms;
    record.coordination_share = (all > 0.0).then(|| times.between_ms / all);
}
