//! Each bad agent is caught, by the rule that it breaks and by no other.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::super::{Demands, Finding, Rule, coordinator_with, executor, executor_with, verifier, verifier_with};
use crate::agents::{AgentError, AsyncCoordinator, AsyncExecutor, AsyncVerifier, Failure, Proposal, Ruling, Sampling};
use prime_bench::tasks::{Kind, Kinds};
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
    fn kinds(&self) -> Kinds {
        Kinds::ALL
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
        (|| Ok(Proposal { logprobs: vec![-0.1], tokens: vec![1, 2], ..proposal("done") }), &[Rule::Logprob]),
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
    let demands = Demands { own_violations: vec!["taste".to_owned()], ..Demands::default() };
    let findings = verifier_with(|| Arc::new(Fun(|_: &Trajectory| Ok(named(1.0, "taste")))), &demands).await;
    assert_eq!(findings, []);
}

/// A verifier whose kinds are other ones at every look.
struct Fickle(AtomicU32);

#[async_trait]
impl AsyncVerifier for Fickle {
    fn kinds(&self) -> Kinds {
        let looks = self.0.fetch_add(1, Ordering::Relaxed) as usize;
        Kind::ALL.into_iter().take(looks % 4).collect()
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        Ok(Verdict::default())
    }
}

#[tokio::test]
async fn kinds_that_change() {
    let findings = verifier(|| Arc::new(Fickle(AtomicU32::new(0)))).await;
    assert_eq!(rules(&findings), [Rule::StableKinds]);
    // One that is the same for its whole life, and other than the next one.
    let made = AtomicU32::new(0);
    let findings = verifier(|| Arc::new(Fixed(made.fetch_add(1, Ordering::Relaxed)))).await;
    assert_eq!(rules(&findings), [Rule::StableKinds]);
}

struct Fixed(u32);

#[async_trait]
impl AsyncVerifier for Fixed {
    fn kinds(&self) -> Kinds {
        if self.0 == 0 { Kinds::ALL } else { Kinds::NONE }
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        Ok(Verdict::default())
    }
}

/// A verifier that panics on what is no text of its alphabet.
struct Ascii;

#[async_trait]
impl AsyncVerifier for Ascii {
    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    async fn judge(&self, _: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        assert!(line.is_ascii(), "what a line");
        Ok(Verdict::default())
    }
}

/// A coordinator that looks at the first letter, and of long lines at nothing.
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
    assert!(findings[0].turn.contains("unicode") && findings[0].detail.contains("what a line"), "{}", findings[0]);
    let findings = coordinator_with(|| Arc::new(FirstLetter), &Demands::default()).await;
    assert_eq!(rules(&findings), [Rule::NoPanic]);
    assert!(findings[0].turn.contains("empty"), "{}", findings[0]);
}

/// Hangs from the first turn on.
struct Hanging;

#[async_trait]
impl AsyncExecutor for Hanging {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        pending().await
    }
}

#[tokio::test]
async fn no_answer_ends_the_suite() {
    let demands = Demands { within: Duration::from_millis(20), ..Demands::default() };
    let findings = executor_with(|| Arc::new(Hanging), &demands).await;
    assert_eq!((rules(&findings), findings.len()), (vec![Rule::Answers], 1));
}

/// Keeps a mark while a turn waits, and forgets to take it away when the turn is given up.
#[derive(Default)]
struct Marked {
    busy: AtomicBool,
    /// Whether a second turn is an error, or waits for ever.
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
async fn what_is_given_up_must_not_stick() {
    let findings = executor(|| Arc::new(Marked::default())).await;
    assert!(rules(&findings).contains(&Rule::UsableAfterDrop), "{findings:#?}");
    let demands = Demands { within: Duration::from_millis(50), ..Demands::default() };
    let findings = executor_with(|| Arc::new(Marked { waits: true, ..Marked::default() }), &demands).await;
    assert!(rules(&findings).contains(&Rule::UsableAfterDrop), "{findings:#?}");
}

/// Works on the thread where it was first used, and on no other.
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
async fn an_agent_belongs_to_no_thread() {
    let findings = executor(|| Arc::new(OfOneThread::default())).await;
    assert_eq!(rules(&findings), [Rule::Concurrent]);
}
