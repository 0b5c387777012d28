//! Systems that run step by step.

use std::sync::Arc;

use prime_bench::tasks::Problem;
use prime_protocol::{Assurance, Cost, Ending, Outcome};
use prime_study::definition::{AskedRun, Prompts, Study};
use prime_study::records::Record;
use tokio::time::Instant;

use super::spending::{Budget, without_budget};
use super::{Answered, Places, judged, never_completed, out_of_time, with_curve};
use crate::evaluation::comparison::System;
use crate::evaluation::run_trace::{RunTrace, Times};
use crate::evaluation::running_system::{RunningSystem, RuntimeEnded};
use prime_runtime::RuntimePlan;

/// Concurrent turns of a cell: more than are ever needed. The number of concurrent runs is the
/// limit, so that no run spends its wall-clock budget in a queue before the engine.
const TURNS_IN_FLIGHT: u32 = 4_096;

/// A running system.
pub struct RunSystem {
    running: RunningSystem,
    /// Budget of proposals of a run; `None` derives it from the reference's steps.
    steps_max: Option<u64>,
    /// Places in the pools that its agents ask, each pool once and in the same order for all systems,
    /// so that no two runs wait for each other.
    places: Vec<Places>,
}

impl RunSystem {
    /// Starts its actors. Must be called within an actix system.
    pub fn start(
        system: System,
        runtime: &RuntimePlan,
        steps_max: Option<u64>,
        places: Vec<Places>,
    ) -> Self {
        Self { running: RunningSystem::start(system, runtime, TURNS_IN_FLIGHT), steps_max, places }
    }

    /// A run that ends when it has spent as many tokens as its budget.
    pub(super) async fn run_within(
        &self,
        run: &AskedRun,
        study: &Study,
        seed: u64,
        budget: Budget,
        record: Record,
    ) -> Result<Record, RuntimeEnded> {
        let tokens = match budget {
            Budget::Unlimited => None,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of tokens; 0 would be no limit"
            )]
            Budget::Of(tokens) => Some((tokens as u64).max(1)),
            Budget::Unknown => return Ok(without_budget(record)),
        };
        let mut record = self.run(run, study, seed, tokens, record).await?.record;
        record.matched_budget = tokens.map(|tokens| tokens as f64);
        Ok(record)
    }

    /// `tokens` ends it, as `study.prompts` counts them.
    pub(super) async fn run(
        &self,
        run: &AskedRun,
        study: &Study,
        seed: u64,
        tokens: Option<u64>,
        mut record: Record,
    ) -> Result<Answered, RuntimeEnded> {
        let problem = run.instance().problem();

        let mut plan = self.running.plan(problem.as_ref());
        // Which kinds are looked at may depend on the task.
        record.set_kinds(plan.basis.kinds(), problem.sound());

        plan.budget.steps = self.steps_max.unwrap_or(plan.budget.steps);
        if let Some(tokens) = tokens {
            let limit = match study.prompts {
                Prompts::None => &mut plan.budget.completion_tokens,
                Prompts::All | Prompts::Computed => &mut plan.budget.tokens,
            };
            // 0 means no limit.
            *limit = if *limit == 0 { tokens } else { tokens.min(*limit) };
        }
        let trace = Arc::new(RunTrace::default());

        // A trajectory has one request in flight. The clock starts only when all may be sent.
        let (mut taken, asked) = (Vec::new(), Instant::now());
        for places in &self.places {
            taken.push(places.take(plan.fanout).await);
        }

        let queued_ms = Some(asked.elapsed().as_secs_f64() * 1e3);

        let (outcome, seconds) = self.running.run(&problem, plan, seed, trace.clone()).await?;
        drop(taken);
        let record = Record { wall_ms: seconds * 1e3, queued_ms, ..record };
        let record = recorded(run, study, problem.as_ref(), &outcome, &trace, record).await;
        Ok(Answered {
            text: String::new(),
            answer: outcome.answer,
            mean_logprob: trace.mean_logprob(),
            record,
        })
    }
}

/// Completes the record of a run that has ended.
async fn recorded(
    run: &AskedRun,
    study: &Study,
    problem: &dyn Problem,
    outcome: &Outcome,
    trace: &RunTrace,
    mut record: Record,
) -> Record {
    record.set_problem(problem);

    record.steps = outcome.steps;
    record.proposals = outcome.proposals;
    record.retries = outcome.retries;
    record.steps_retried = Some(trace.steps_retried());
    record.set_refusals(&trace.refusals());
    record.backtracks = outcome.backtracks;
    record.pops = outcome.pops;
    record.rounds = outcome.rounds;
    record.trajectories = outcome.trajectories;
    record.prompt_tokens = outcome.usage.prompt;
    record.completion_tokens = outcome.usage.completion;
    record.cached_tokens = Some(outcome.usage.cached);
    record.cost = outcome.usage.cost.map(Cost::units);

    set_times(&mut record, trace.times());

    record.failure = match &outcome.ending {
        Ending::Agreed => None,
        Ending::AgentFailed(reason) => Some(reason.clone()),
        ending => outcome.answer.is_none().then(|| ending.name().to_owned()),
    };
    let late = out_of_time(study, &outcome.ending, outcome.answer.is_some());
    let never = never_completed(&record, outcome.ending.name(), outcome.answer.is_some()).or(late);
    // The run does not count as measured, but its reference's steps show how far it had to go.
    if never.is_some() || matches!(outcome.ending, Ending::AgentFailed(_)) {
        if let Some(reason) = never {
            let last = outcome.last_failure.as_ref();
            record.failure =
                Some(last.map_or_else(|| reason.clone(), |last| format!("{reason}: {last}")));
        }
        if problem.has_reference() {
            record.reference_steps = problem.reference().steps;
        }
        return record;
    }

    // A study measures verifiers: what counts is whether this one accepted every step.
    record.accepted = outcome.assurance >= Some(Assurance::Unrefuted);
    record.agreement = outcome.answer.is_some().then_some(outcome.agreement);
    record.votes = outcome.votes.first().map(|ballot| ballot.votes);
    let record = judged(run, problem, outcome.answer.clone(), trace, record).await;
    with_curve(study, problem, trace, record).await
}

fn set_times(record: &mut Record, times: Times) {
    record.executor_ms = Some(times.executor_ms);
    record.verifier_ms = Some(times.verifier_ms);
    record.coordinator_ms = Some(times.coordinator_ms);

    let work = times.executor_ms + times.verifier_ms + times.coordinator_ms;
    let all = work + times.between_ms;
    record.coordination_share = (all > 0.0).then(|| times.between_ms / all);
}
