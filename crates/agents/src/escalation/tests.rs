use std::sync::Mutex;

use futures::executor::block_on;

use super::*;
use crate::Failure;
use prime_bench::tasks::{self, Difficulty};
use prime_protocol::{Decision, Limits, Verdict};

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };
const SAMPLING: Sampling = Sampling { temperature: 1.0, top_p: 1.0, seed: 9 };

/// Proposes its lines in turn and records the seeds.
struct Lines {
    lines: Vec<Result<&'static str, Failure>>,
    seeds: Mutex<Vec<u64>>,
}

#[async_trait]
impl AsyncExecutor for Lines {
    async fn propose(&self, _: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let mut seeds = self.seeds.lock().expect("no panic with the lock");
        let line = self.lines[seeds.len()]
            .map_err(|failure| AgentError::new("executor `x`", failure, "gone"))?;
        seeds.push(sampling.seed);
        Ok(Proposal { line: line.to_owned(), usage: Usage::new(10, 1), ..Proposal::default() })
    }
}

type Lined = Vec<Result<&'static str, Failure>>;

fn trajectory(rejected: &[&str]) -> Trajectory {
    let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
    let mut trajectory = Trajectory::new(problem.start(), &LIMITS);
    for line in rejected {
        trajectory.settle(line, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    }
    trajectory
}

fn propose(small: Lined, rejected: &[&str]) -> (Result<Proposal, AgentError>, Vec<u64>) {
    let samples = u32::try_from(small.len()).expect("few");
    let small = Arc::new(Lines { lines: small, seeds: Mutex::default() });
    let large = Arc::new(Lines { lines: vec![Ok("large line")], seeds: Mutex::default() });
    let named = |name: &str, executor: Arc<Lines>| NamedExecutor { name: name.into(), executor };
    let executor =
        EscalatingExecutor::new(named("tiny", Arc::clone(&small)), named("big", large), samples, 2);

    let proposal = block_on(executor.expect("samples").propose(&trajectory(rejected), SAMPLING));
    let seeds = small.seeds.lock().expect("no panic with the lock").clone();
    (proposal, seeds)
}

#[test]
fn the_large_executor_is_asked_where_the_small_ones_samples_differ_or_were_rejected() {
    let (a, b) = (Ok("a"), Ok("b"));
    let rows: [(Lined, &[&str], &str, &str, u64); 8] = [
        (vec![a], &[], "a", "tiny", 10),
        (vec![a, a, a], &[], "a", "tiny", 30),
        (vec![a, a, b], &[], "large line", "big", 40),
        (vec![b, a, a], &[], "large line", "big", 40),
        (vec![a, a], &["x"], "a", "tiny", 20),
        (vec![a, a], &["a"], "large line", "big", 30),
        (vec![a, a], &["x", "y"], "large line", "big", 10),
        (vec![a, a, a], &["x", "y", "z"], "large line", "big", 10),
    ];
    for (small, rejected, line, source, prompt) in rows {
        let proposal = propose(small.clone(), rejected).0.expect("a proposal");
        assert_eq!(
            (proposal.line.as_str(), proposal.source.as_deref()),
            (line, Some(source)),
            "{small:?} {rejected:?}"
        );
        assert_eq!(
            proposal.usage.prompt, prompt,
            "all that was spent counts: {small:?} {rejected:?}"
        );
    }
}

#[test]
fn samples_have_their_own_seeds_derived_from_the_turns() {
    let seeds = propose(vec![Ok("a"); 3], &[]).1;
    assert_eq!(seeds, propose(vec![Ok("a"); 3], &[]).1, "the same each time");
    assert_eq!(seeds[0], SAMPLING.seed);
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2], "{seeds:?}");
}

#[test]
fn a_permanent_failure_of_the_small_executor_is_returned() {
    let proposal = propose(vec![Err(Failure::Timeout)], &[]).0.expect("the large one's");
    assert_eq!(proposal.source.as_deref(), Some("big"));

    let error = propose(vec![Err(Failure::Refused)], &[]).0.expect_err("a wrong key");
    assert_eq!(error.failure, Failure::Refused);

    let lines = || NamedExecutor {
        name: "x".into(),
        executor: Arc::new(Lines { lines: Vec::new(), seeds: Mutex::default() }),
    };
    assert!(EscalatingExecutor::new(lines(), lines(), 0, 1).is_err(), "no samples");
}
