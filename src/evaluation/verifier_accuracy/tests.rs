//! Verifiers with known errors.

use async_trait::async_trait;

use super::*;
use crate::evaluation::labelled_steps::labelled_steps;
use prime_agent_set::{
    AgentError, AsyncVerifier, Basis, Failure, ReferenceVerifier, RulesVerifier,
};
use prime_bench::tasks::{self, Difficulty, Kind, Kinds, Spec};
use prime_protocol::Trajectory;

/// Judges labelled steps at `count` states of a task.
async fn row(verifier: &dyn Verifier, slug: &'static str, count: u32) -> VerifierRow {
    read(verifier, LogProbability::Verdict, slug, count).await
}

async fn read(
    verifier: &dyn Verifier,
    logprob: LogProbability,
    slug: &'static str,
    count: u32,
) -> VerifierRow {
    let steps = labelled_steps(tasks::find(slug).unwrap(), Difficulty::Easy, count, 7).await;
    VerifierRow::new("test", Some(slug), &Verdicts::of(verifier, logprob, &steps).await)
}

fn counts(row: &VerifierRow) -> [(u64, u64); 3] {
    [row.false_rejects, row.false_accepts, row.false_accepts_garbage]
        .map(|share| (share.count, share.of))
}

#[tokio::test]
async fn a_verifier_that_checks_nothing_accepts_every_wrong_step() {
    let row = row(&RulesVerifier::new(Kinds::NONE), "tower-of-hanoi", 20).await;
    assert_eq!(counts(&row), [(0, 20), (20, 20), (20, 20)]);
    assert_eq!((row.failed, row.probability_right, row.probability_wrong), (0, None, None));
}

#[tokio::test]
async fn the_reference_verifier_is_never_wrong() {
    for slug in ["tower-of-hanoi", "bubble-sort", "n-queens", "dfa-simulation"] {
        let row = row(&ReferenceVerifier, slug, 20).await;
        assert_eq!(counts(&row), [(0, 20), (0, row.false_accepts.of), (0, 20)], "{slug}");
        assert!(row.false_accepts.of >= 15, "{slug}: {row:?}");
    }
}

#[tokio::test]
async fn the_form_alone_finds_garbage_and_nothing_else() {
    let row =
        row(&RulesVerifier::new(Kinds::from_iter([Kind::Format])), "tower-of-hanoi", 20).await;
    assert_eq!(counts(&row), [(0, 20), (20, 20), (0, 20)]);
}

/// Gives the same verdict on every step, at a cost; without one, it fails.
struct Says(Option<(u32, f64)>);

#[async_trait]
impl AsyncVerifier for Says {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        let (tenths, probability) = self
            .0
            .ok_or_else(|| AgentError::new("verifier `says`", Failure::Timeout, "no answer"))?;
        #[expect(clippy::cast_possible_truncation, reason = "a probability")]
        let logprob = Some(probability.ln() as f32);
        let usage = Usage { prompt: 30, completion: 1 };
        Ok(Verdict { score: Score::from_tenths(tenths), logprob, usage, ..Verdict::default() })
    }
}

#[tokio::test]
async fn probabilities_are_those_of_a_right_step() {
    // Right with 0.9; not surely enough with 0.6; wrong with 0.8, so right with 0.2.
    for (tenths, said, accepts, expected) in
        [(0, 0.9, true, 0.9), (2, 0.6, false, 0.6), (10, 0.8, false, 0.2)]
    {
        let row = row(&Says(Some((tenths, said))), "tower-of-hanoi", 5).await;
        let (rejects, accepted) = if accepts { (0, 5) } else { (5, 0) };
        assert_eq!(counts(&row), [(rejects, 5), (accepted, 5), (accepted, 5)]);
        for probability in [row.probability_right, row.probability_wrong] {
            assert!((probability.unwrap() - expected).abs() < 1e-6, "{row:?}");
        }
        assert_eq!((row.prompt_tokens, row.completion_tokens), (30.0, 1.0));
    }
}

#[tokio::test]
async fn a_probability_of_the_step_is_taken_as_it_is() {
    for (tenths, said) in [(0, 0.9), (10, 0.05)] {
        let row =
            read(&Says(Some((tenths, said))), LogProbability::Step, "tower-of-hanoi", 5).await;
        assert!((row.probability_wrong.unwrap() - said).abs() < 1e-6, "{row:?}");
    }
}

#[tokio::test]
async fn failures_are_no_verdicts() {
    let row = row(&Says(None), "tower-of-hanoi", 5).await;
    assert_eq!(counts(&row), [(0, 0), (0, 0), (0, 0)]);
    assert_eq!((row.failed, row.failure.as_deref()), (15, Some("verifier `says`: no answer")));
}

#[tokio::test]
async fn tasks_are_added_up() {
    let mut all = Verdicts::default();
    for slug in ["tower-of-hanoi", "bubble-sort"] {
        let steps = labelled_steps(tasks::find(slug).unwrap(), Difficulty::Easy, 10, 7).await;
        all.add(
            Verdicts::of(&RulesVerifier::new(Kinds::NONE), LogProbability::Verdict, &steps).await,
        );
    }

    let row = VerifierRow::new("none", None, &all);
    assert_eq!(counts(&row)[0], (0, 20));
    assert_eq!(counts(&row)[2], (20, 20));
}
