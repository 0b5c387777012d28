//! The gain from speculative proceed: steps per second with an executor and a verifier of fixed
//! latency, where 95 of 100 steps are accepted. `cargo bench -p prime-benches --bench speculation`,
//! or with other latencies in milliseconds: `… -- 5 20`.
#![allow(clippy::cast_precision_loss, reason = "it measures")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use prime_agent_set::{
    AgentError, AgentSet, AsyncExecutor, AsyncVerifier, Basis, Executor, Names, Proposal,
    ReferenceExecutor, RulesVerifier, Sampling, ThresholdCoordinator, Verifier,
};
use prime_bench::tasks::{self, Kinds, Spec, TaskRng};
use prime_protocol::{Limits, RunPlan, Score, Speculations, Thresholds, Trajectory, Verdict};
use prime_runtime::{
    Diversity, Placement, RestartLimit, RunSampling, Runtime, RuntimePlan, Silent, Submission,
};
use tokio::time::Instant;

/// Proposes the right line after a delay.
struct SlowExecutor(Duration);

#[async_trait]
impl AsyncExecutor for SlowExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        tokio::time::sleep(self.0).await;
        ReferenceExecutor.propose(trajectory, sampling).await
    }
}

/// Asks to retry 5 of 100 steps, after a delay.
struct SlowVerifier(Duration);

#[async_trait]
impl AsyncVerifier for SlowVerifier {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        tokio::time::sleep(self.0).await;
        // By the number of proposals, so that a retried step is judged anew.
        if TaskRng::new(trajectory.counts.proposals).chance(5, 100) {
            return Ok(Verdict { score: Score::from_tenths(2), ..Verdict::default() });
        }
        RulesVerifier::new(Kinds::ALL).judge(trajectory, line).await
    }
}

fn agents(executor: Duration, verifier: Duration) -> AgentSet {
    let thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 5 };
    AgentSet::of(
        Names {
            executor: "slow".into(),
            verifier: "slow".into(),
            coordinator: "threshold".into(),
            locator: None,
        },
        move || Arc::new(SlowExecutor(executor)),
        move || Arc::new(SlowVerifier(verifier)),
        move || Arc::new(ThresholdCoordinator(thresholds)),
    )
}

/// Committed steps per second of concurrent trajectories, each a run of its own.
async fn rate(
    speculate: bool,
    trajectories: usize,
    executor: Duration,
    verifier: Duration,
) -> (f64, Speculations) {
    let plan = RuntimePlan {
        cells: 1,
        placement: Placement::Shared,
        restart_limit: RestartLimit { restarts_max: 0, window: Duration::from_secs(1) },
        hang_after: None,
        in_flight_max: 64,
    };

    let runtime = Runtime::start(&plan, Arc::new(agents(executor, verifier)));
    let input = serde_json::json!({ "n": 8, "from": 0, "to": 2 });
    let problem = tasks::find("tower-of-hanoi").expect("listed").read_input(&input).expect("valid");

    let started = Instant::now();
    let submission = || Submission {
        problem: Arc::clone(&problem),
        plan: RunPlan {
            limits: Limits {
                attempts_max: 8,
                pops_max: 0,
                snapshot_every_frames: 64,
                ..Limits::DEFAULT
            },
            speculate,
            ..RunPlan::single(10_000)
        },
        sampling: RunSampling {
            temperature: 0.0,
            top_p: 1.0,
            seed: 1,
            diversity: Diversity::default(),
        },
        observer: Arc::new(Silent),
        suspended: None,
    };

    let mut handles: Vec<_> = (0..trajectories).map(|_| runtime.submit(submission())).collect();

    let (mut steps, mut speculations) = (0, Speculations::default());

    for outcome in join_all(handles.iter_mut().map(|handle| handle.outcome())).await {
        let outcome = outcome.expect("the runtime lives");
        assert!(outcome.is_verified(), "{outcome:?}");
        steps += outcome.steps;
        speculations.add(outcome.speculations);
    }

    (steps as f64 / started.elapsed().as_secs_f64(), speculations)
}

fn main() {
    // Cargo passes `--bench`.
    let given: Vec<u64> =
        std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();

    let (executor, verifier) = match given[..] {
        [] => (5, 5),
        [both] => (both, both),
        [executor, verifier, ..] => (executor, verifier),
    };

    println!("executor {executor} ms, verifier {verifier} ms, 95 % accepted; committed steps/s");
    println!("trajectories  without     with  ratio  used  wasted");

    actix::System::new().block_on(async {
        for trajectories in [1, 8] {
            let [executor, verifier] = [executor, verifier].map(Duration::from_millis);
            let (without, _) = rate(false, trajectories, executor, verifier).await;
            let (with, Speculations { used, wasted }) =
                rate(true, trajectories, executor, verifier).await;

            println!(
                "{trajectories:>12}  {without:>7.1}  {with:>7.1}  {:>5.2}  {used:>4}  {wasted:>6}",
                with / without
            );
        }
    });
}
