//! The suite itself: each bad agent violates exactly one rule.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Finding, Requirements, Rule, coordinator_with, executor, executor_with, verifier, verifier_with,
};
use crate::{
    AgentError, AsyncCoordinator, AsyncExecutor, AsyncVerifier, Basis, Failure, Proposal, Ruling,
    Sampling,
};
use prime_bench::tasks::{Kind, Kinds, Spec};
use prime_protocol::{Decision, Score, Trajectory, Verdict};

/// An executor from a function.
struct Fun<F>(F);

#[async_trait]
impl<F: Fn(&Trajectory) -> Result<Proposal, AgentError> + Send + Sync> AsyncExecutor for Fun<F> {
    async fn propose(&self, trajectory: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        (self.0)(trajectory)
    }
}

#[async_trait]
impl<F: Fn(&Trajectory) -> Result<Verdict, AgentError> + Send + Sync> AsyncVerifier for Fun<F> {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, trajectory: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        (self.0)(trajectory)
    }
}

fn rules(findings: &[Finding]) -> Vec<Rule> {
    let mut rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

fn proposal(line: &str) -> Proposal {
    Proposal { line: line.to_owned(), ..Proposal::default() }
}

#[tokio::test]
async fn bad_proposals() {
    type Propose = fn() -> Result<Proposal, AgentError>;
    let rows: [(Propose, &[Rule]); 8] = [
        (|| Ok(proposal("done")), &[]),
        (|| Ok(proposal("cmp 0 1\n")), &[Rule::OneLine]),
        (|| Ok(proposal(&"x".repeat((1 << 16) + 1))), &[Rule::OneLine]),
        (|| Ok(Proposal { logprobs: vec![f32::NAN], ..proposal("done") }), &[Rule::Logprob]),
        (
            || Ok(Proposal { logprobs: vec![-0.1], tokens: vec![1, 2], ..proposal("done") }),
            &[Rule::Logprob],
        ),
        (|| Err(AgentError::new("somebody", Failure::Died, "it is gone")), &[Rule::NamedError]),
        (|| Err(AgentError::new("executor `x`", Failure::Died, " ")), &[Rule::NamedError]),
        (|| Err(AgentError::new("executor `x`", Failure::Unsupported, "never")), &[]),
    ];

    for (propose, expected) in rows {
        let findings = executor(|| Arc::new(Fun(move |_: &Trajectory| propose()))).await;
        assert_eq!(rules(&findings), expected, "{findings:#?}");
        assert!(findings.len() <= 3, "{findings:#?}");
    }
}

#[tokio::test]
async fn bad_verdicts() {
    fn named(score: f64, violation: &'static str) -> Verdict {
        let score = Score::from_value(score).expect("a score");
        Verdict { score, violations: vec![violation.into()], ..Verdict::default() }
    }

    type Judge = fn() -> Result<Verdict, AgentError>;
    let rows: [(Judge, &[Rule]); 5] = [
        (|| Ok(named(1.0, "format")), &[]),
        (|| Ok(named(1.0, "taste")), &[Rule::KnownViolation]),
        (|| Ok(named(0.0, "format")), &[Rule::ClearVerdict]),
        (|| Ok(Verdict { logprob: Some(0.5), ..Verdict::default() }), &[Rule::Logprob]),
        (|| Err(AgentError::new("executor `x`", Failure::Died, "gone")), &[Rule::NamedError]),
    ];
    for (judge, expected) in rows {
        let findings = verifier(|| Arc::new(Fun(move |_: &Trajectory| judge()))).await;
        assert_eq!(rules(&findings), expected, "{findings:#?}");
    }

    let requirements =
        Requirements { own_violations: vec!["taste".to_owned()], ..Requirements::default() };

    let findings =
        verifier_with(|| Arc::new(Fun(|_: &Trajectory| Ok(named(1.0, "taste")))), &requirements)
            .await;
    assert_eq!(findings, []);
}

/// A verifier whose kinds change with every call.
struct Fickle(AtomicU32);

#[async_trait]
impl AsyncVerifier for Fickle {
    fn basis(&self, _: &Spec) -> Basis {
        let looks = self.0.fetch_add(1, Ordering::Relaxed) as usize;
        Basis::rules(Kind::ALL.into_iter().take(looks % 4).collect())
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        Ok(Verdict::default())
    }
}

#[tokio::test]
async fn kinds_that_change() {
    let findings = verifier(|| Arc::new(Fickle(AtomicU32::new(0)))).await;
    assert_eq!(rules(&findings), [Rule::StableKinds]);

    // Constant for each agent, but different between agents.
    let made = AtomicU32::new(0);
    let findings = verifier(|| Arc::new(Fixed(made.fetch_add(1, Ordering::Relaxed)))).await;
    assert_eq!(rules(&findings), [Rule::StableKinds]);
}

struct Fixed(u32);

#[async_trait]
impl AsyncVerifier for Fixed {
    fn basis(&self, _: &Spec) -> Basis {
        if self.0 == 0 { Basis::rules(Kinds::ALL) } else { Basis::NONE }
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        Ok(Verdict::default())
    }
}

/// A verifier that panics on non-ASCII text.
struct Ascii;

#[async_trait]
impl AsyncVerifier for Ascii {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, _: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        assert!(line.is_ascii(), "what a line");
        Ok(Verdict::default())
    }
}

/// A coordinator that indexes the first character and ignores long lines.
struct FirstLetter;

#[async_trait]
impl AsyncCoordinator for FirstLetter {
    async fn decide(&self, _: &Trajectory, line: &str, _: &Verdict) -> Result<Ruling, AgentError> {
        let is_done = line.as_bytes()[0] == b'd';
        Ok(if is_done { Decision::Proceed } else { Decision::Retry }.into())
    }
}

#[tokio::test]
async fn panics_on_odd_lines() {
    let findings = verifier(|| Arc::new(Ascii)).await;
    assert_eq!(rules(&findings), [Rule::NoPanic]);
    assert!(
        findings[0].turn.contains("unicode") && findings[0].detail.contains("what a line"),
        "{}",
        findings[0]
    );

    let findings = coordinator_with(|| Arc::new(FirstLetter), &Requirements::default()).await;
    assert_eq!(rules(&findings), [Rule::NoPanic]);
    assert!(findings[0].turn.contains("empty"), "{}", findings[0]);
}

/// Hangs in every turn.
struct Hanging;

#[async_trait]
impl AsyncExecutor for Hanging {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        pending().await
    }
}

#[tokio::test]
async fn a_timeout_stops_the_suite() {
    let requirements =
        Requirements { timeout: Duration::from_millis(20), ..Requirements::default() };
    let findings = executor_with(|| Arc::new(Hanging), &requirements).await;
    assert_eq!((rules(&findings), findings.len()), (vec![Rule::Answers], 1));
}

/// Sets a flag during a turn and does not clear it when the turn is cancelled.
#[derive(Default)]
struct Marked {
    busy: AtomicBool,
    /// True if a second turn waits forever; otherwise it fails.
    waits: bool,
}

#[async_trait]
impl AsyncExecutor for Marked {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        if self.busy.swap(true, Ordering::SeqCst) {
            if self.waits {
                pending::<()>().await;
            }
            return Err(AgentError::new("executor `marked`", Failure::Overloaded, "it is busy"));
        }
        tokio::task::yield_now().await;
        self.busy.store(false, Ordering::SeqCst);
        Ok(proposal("done"))
    }
}

#[tokio::test]
async fn cancelled_turns_must_leave_no_trace() {
    let findings = executor(|| Arc::new(Marked::default())).await;
    assert!(rules(&findings).contains(&Rule::UsableAfterCancel), "{findings:#?}");

    let requirements =
        Requirements { timeout: Duration::from_millis(50), ..Requirements::default() };
    let findings =
        executor_with(|| Arc::new(Marked { waits: true, ..Marked::default() }), &requirements)
            .await;
    assert!(rules(&findings).contains(&Rule::UsableAfterCancel), "{findings:#?}");
}

/// Works only on the thread where it was first used.
#[derive(Default)]
struct OfOneThread(std::sync::OnceLock<std::thread::ThreadId>);

#[async_trait]
impl AsyncExecutor for OfOneThread {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        let here = std::thread::current().id();
        if *self.0.get_or_init(|| here) == here {
            Ok(proposal("done"))
        } else {
            Err(AgentError::new("executor `x`", Failure::Unreachable, "wrong thread"))
        }
    }
}

#[tokio::test]
async fn agents_must_work_on_any_thread() {
    let findings = executor(|| Arc::new(OfOneThread::default())).await;
    assert_eq!(rules(&findings), [Rule::Concurrent]);
}
