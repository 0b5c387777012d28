//! Verifiers with known errors.

use async_trait::async_trait;

use super::*;
use prime_agent_set::card::CardRow;
use prime_agent_set::{
    AgentError, AsyncVerifier, Basis, Failure, ReferenceVerifier, RulesVerifier,
};
use prime_bench::interval::Proportion;
use prime_bench::judge::labelled::{labelled_steps, labelled_traces};
use prime_bench::tasks::{self, Difficulty, Kind, Kinds, Spec};

/// Labelled steps at `count` states of an easy task, and as many traces of each origin.
async fn verdicts(
    verifier: &dyn Verifier,
    logprob: LogProbability,
    slug: &str,
    count: u32,
) -> Verdicts {
    let task = tasks::find(slug).unwrap();
    let steps = labelled_steps(task, Difficulty::Easy, count, 7);
    let traces = labelled_traces(task, Difficulty::Easy, count, 7);
    Verdicts::of(verifier, logprob, &steps, &traces).await
}

async fn row(verifier: &dyn Verifier, slug: &str, count: u32) -> CardRow {
    verdicts(verifier, LogProbability::Verdict, slug, count).await.row(None, None)
}

fn counts(shares: &[Proportion]) -> Vec<(u64, u64)> {
    shares.iter().map(|share| (share.count, share.of)).collect()
}

#[tokio::test]
async fn a_verifier_that_checks_nothing_accepts_every_wrong_step_and_run() {
    let row = row(&RulesVerifier::new(Kinds::NONE), "n-queens", 10).await;
    let steps = &row.steps;
    assert_eq!(counts(&[steps.false_rejects, steps.false_accepts_garbage]), [(0, 10), (10, 10)]);
    assert_eq!(steps.false_accepts.count, steps.false_accepts.of);
    assert_eq!((steps.failed, steps.probability_right, steps.probability_wrong), (0, None, None));

    // Ten reference traces, and a corrupted one whose other choice is as good.
    assert_eq!(counts(&[row.runs.false_rejects]), [(0, 11)]);
    assert_eq!(row.runs.false_accepts.count, row.runs.false_accepts.of);
    assert!(row.runs.false_accepts.of > 0, "{row:?}");
    assert_eq!(row.first_error.erroneous.count, 0);
    assert_eq!(row.first_error.f1, Some(0.0));
}

#[tokio::test]
async fn the_reference_verifier_is_never_wrong() {
    for slug in ["bubble-sort", "n-queens", "dfa-simulation"] {
        let row = row(&ReferenceVerifier, slug, 10).await;
        let (steps, runs) = (&row.steps, &row.runs);
        assert_eq!(counts(&[steps.false_rejects, steps.false_accepts_garbage]), [(0, 10), (0, 10)]);
        assert_eq!((steps.false_accepts.count, runs.false_accepts.count), (0, 0), "{slug}");
        assert!(steps.false_accepts.of >= 10, "{slug}: {row:?}");
        assert_eq!(runs.false_rejects.count, 0, "{slug}");
        assert_eq!(row.first_error.f1, Some(1.0), "{slug}: {row:?}");
    }
}

#[tokio::test]
async fn the_form_alone_finds_garbage_and_nothing_else() {
    let row = row(&RulesVerifier::new(Kinds::from_iter([Kind::Format])), "n-queens", 10).await;
    assert_eq!(
        counts(&[row.steps.false_rejects, row.steps.false_accepts_garbage]),
        [(0, 10), (0, 10)]
    );
    assert_eq!(row.steps.false_accepts.count, row.steps.false_accepts.of);

    // The types of errors add up to the whole.
    let by_error = &row.steps.by_error;
    let (count, of) = by_error.iter().fold((0, 0), |(count, of), rate| {
        (count + rate.false_accepts.count, of + rate.false_accepts.of)
    });
    let steps = &row.steps;
    assert_eq!(count, steps.false_accepts.count);
    assert_eq!(of, steps.false_accepts.of + steps.false_accepts_garbage.of);
    for origin in [Origin::Random, Origin::Adversarial] {
        assert!(by_error.iter().any(|rate| rate.origin == origin), "{by_error:?}");
    }
}

/// Rejects the step with this number of a trace.
struct RejectsAt(usize);

#[async_trait]
impl AsyncVerifier for RejectsAt {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, trajectory: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        let is_there = trajectory.stack.lines().len() == self.0;
        let score = if is_there { Score::from_tenths(10) } else { Score::ZERO };
        let usage = Usage::new(4, 1);
        Ok(Verdict { score, usage, ..Verdict::default() })
    }
}

#[tokio::test]
async fn traces_are_judged_with_their_steps_until_one_is_rejected() {
    let traces = labelled_traces(tasks::find("n-queens").unwrap(), Difficulty::Easy, 3, 7);
    let judged = Verdicts::of(&RejectsAt(1), LogProbability::Verdict, &[], &traces).await;
    let row = judged.row(None, None);

    // Every trace has a second step, unless its first one is refused or ends it.
    let asked: u64 = traces.traces.iter().map(|trace| trace.lines.len().min(2) as u64).sum();
    assert_eq!(judged.asked, asked);
    assert_eq!((row.cost.prompt_tokens, row.cost.completion_tokens), (4.0, 1.0));
    assert_eq!(counts(&[row.runs.false_rejects, row.first_error.correct]), [(3, 3), (0, 3)]);

    let found = traces.traces.iter().filter_map(|trace| trace.first_error.as_ref());
    let second = found.filter(|(at, _)| *at == 1).count() as u64;
    assert_eq!(row.first_error.erroneous.count, second);
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
        let usage = Usage::new(30, 1);
        Ok(Verdict { score: Score::from_tenths(tenths), logprob, usage, ..Verdict::default() })
    }
}

#[tokio::test]
async fn probabilities_are_those_of_a_right_step() {
    // Right with 0.9; not surely enough with 0.6; wrong with 0.8, so right with 0.2.
    for (tenths, said, accepts, expected) in
        [(0, 0.9, true, 0.9), (2, 0.6, false, 0.6), (10, 0.8, false, 0.2)]
    {
        let row = row(&Says(Some((tenths, said))), "n-queens", 5).await;
        assert_eq!(row.steps.false_rejects.count, if accepts { 0 } else { 5 });
        assert_eq!(row.steps.false_accepts_garbage.count, if accepts { 5 } else { 0 });
        for probability in [row.steps.probability_right, row.steps.probability_wrong] {
            assert!((probability.unwrap() - expected).abs() < 1e-6, "{row:?}");
        }
        assert_eq!((row.cost.prompt_tokens, row.cost.completion_tokens), (30.0, 1.0));
    }
}

#[tokio::test]
async fn a_probability_of_the_step_is_taken_as_it_is() {
    for (tenths, said) in [(0, 0.9), (10, 0.05)] {
        let says = Says(Some((tenths, said)));
        let row = verdicts(&says, LogProbability::Step, "n-queens", 5).await.row(None, None);
        assert!((row.steps.probability_wrong.unwrap() - said).abs() < 1e-6, "{row:?}");
    }
}

#[tokio::test]
async fn failures_are_no_verdicts() {
    let row = row(&Says(None), "n-queens", 5).await;
    let (steps, runs) = (&row.steps, &row.runs);
    assert_eq!(
        counts(&[steps.false_rejects, steps.false_accepts, runs.false_accepts]),
        [(0, 0); 3]
    );
    assert_eq!(steps.failure.as_deref(), Some("verifier `says`: no answer"));
    assert_eq!((runs.failure.as_deref(), row.first_error.f1), (steps.failure.as_deref(), None));
    assert!(steps.failed >= 10 && runs.failed >= 10, "{row:?}");
}

#[tokio::test]
async fn tasks_are_added_up() {
    let mut all = Verdicts::default();
    for slug in ["n-queens", "bubble-sort"] {
        let none = RulesVerifier::new(Kinds::NONE);
        all.add(verdicts(&none, LogProbability::Verdict, slug, 10).await);
    }

    let row = all.row(None, None);
    assert_eq!(
        counts(&[row.steps.false_rejects, row.steps.false_accepts_garbage]),
        [(0, 20), (20, 20)]
    );
}
