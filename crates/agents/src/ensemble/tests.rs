use std::borrow::Cow;

use futures::executor::block_on;
use serde_json::json;

use super::*;
use prime_bench::tasks::{self, Difficulty, Kind, Kinds};
use prime_problems::Custom;
use prime_protocol::Limits;

/// A task; what the verifiers here look at is the same for all.
fn task() -> &'static Spec {
    prime_bench::tasks::find("bubble-sort").expect("listed").spec()
}

/// Returns the same verdict for every step.
struct Says {
    answer: Result<(u32, Vec<&'static str>), Failure>,
    reads: bool,
    kind: Kind,
}

#[async_trait]
impl AsyncVerifier for Says {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::from_iter([self.kind]))
    }

    fn reads_words(&self) -> bool {
        self.reads
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        let (tenths, names) = self
            .answer
            .clone()
            .map_err(|failure| AgentError::new("verifier `x`", failure, "gone"))?;
        let feedback = (tenths > 0).then(|| names.join(" and "));
        Ok(Verdict {
            score: Score::from_tenths(tenths),
            violations: names.into_iter().map(Cow::Borrowed).collect(),
            feedback,
            usage: Usage::new(3, 1),
            ..Verdict::default()
        })
    }
}

fn says(tenths: u32, names: &[&'static str]) -> Says {
    Says { answer: Ok((tenths, names.to_vec())), reads: false, kind: Kind::Format }
}

fn fails(failure: Failure) -> Says {
    Says { answer: Err(failure), ..says(0, &[]) }
}

fn ensemble(members: impl IntoIterator<Item = Says>) -> EnsembleVerifier {
    let members = members.into_iter().enumerate().map(|(at, verifier)| EnsembleMember {
        name: format!("v{at}"),
        verifier: Arc::new(verifier),
    });
    EnsembleVerifier::new(members.collect(), Score::from_tenths(5)).expect("an ensemble")
}

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

fn trajectory() -> Trajectory {
    let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
    Trajectory::new(problem.start(), &LIMITS)
}

fn judge(members: impl IntoIterator<Item = Says>) -> Result<Verdict, AgentError> {
    block_on(ensemble(members).judge(&trajectory(), "x"))
}

#[test]
fn the_score_is_the_upper_median() {
    for (scores, median) in [
        (&[0][..], 0),
        (&[0, 6], 6),
        (&[6, 0], 6),
        (&[0, 0, 10], 0),
        (&[10, 2, 0], 2),
        (&[0, 2, 6, 10], 6),
        (&[0, 0, 0, 10], 0),
        (&[0, 0, 10, 10], 10),
    ] {
        let verdict = judge(scores.iter().map(|tenths| says(*tenths, &["c"]))).expect("a verdict");
        assert_eq!(verdict.score, Score::from_tenths(median), "{scores:?}");

        let opinions: Vec<_> = verdict.opinions.iter().map(|opinion| opinion.score).collect();
        assert_eq!(
            opinions,
            scores.iter().map(|tenths| Some(Score::from_tenths(*tenths))).collect::<Vec<_>>()
        );
        assert_eq!(verdict.feedback.is_some(), median > 0, "{scores:?}");
    }
}

#[test]
fn constraints_that_half_of_the_members_name_are_violated() {
    let rows: [(&[&[&'static str]], &[&str]); 5] = [
        (&[&["a"], &["b", "a"], &["b"]], &["a", "b"]),
        (&[&["b"], &["a"]], &["b", "a"]),
        (&[&["b"], &[], &[]], &[]),
        (&[&["c", "b"], &["b", "c"], &[], &[]], &["c", "b"]),
        (&[&[], &[]], &[]),
    ];
    for (named, found) in rows {
        let verdict =
            judge(named.iter().map(|names| says(if names.is_empty() { 0 } else { 6 }, names)))
                .expect("a verdict");
        assert_eq!(verdict.violations, found, "{named:?}");
    }
}

#[test]
fn a_wide_spread_of_scores_asks_for_review() {
    for (scores, is_asked) in
        [([0, 0, 5], false), ([0, 0, 6], true), ([6, 10, 6], false), ([0, 10, 0], true)]
    {
        let verdict = judge(scores.map(|tenths| says(tenths, &[]))).expect("a verdict");
        assert_eq!(verdict.needs_review, is_asked, "{scores:?}");
    }
}

#[test]
fn half_of_the_members_are_enough() {
    let verdict = judge([says(2, &["a"]), fails(Failure::Timeout)]).expect("one of two");
    assert_eq!((verdict.score, verdict.opinions[1].score), (Score::from_tenths(2), None));
    assert_eq!(verdict.usage, Usage::new(3, 1));
    assert_eq!(judge([says(2, &[]), says(2, &[])]).expect("two").usage, Usage::new(6, 2));

    let error = judge([says(0, &[]), fails(Failure::Refused), fails(Failure::Timeout)])
        .expect_err("one of three");
    assert_eq!(
        (error.failure, error.is_transient),
        (Failure::Refused, true),
        "another try may reach the second"
    );
    assert!(
        error.reason.contains("1 of 3") && error.reason.contains("v1: gone; v2: gone"),
        "{error}"
    );

    let error = judge([fails(Failure::Refused)]).expect_err("none");
    assert!(!error.is_transient);
}

#[test]
fn an_ensemble_checks_the_kinds_that_half_of_its_members_check() {
    let of = |kind| Says { kind, ..says(0, &[]) };
    let three = ensemble([of(Kind::Format), of(Kind::Terminal), of(Kind::Format)]).basis(task());
    assert_eq!(three.kinds(), Kinds::from_iter([Kind::Format]), "one member in three is outvoted");

    let two = ensemble([of(Kind::Format), of(Kind::Terminal)]).basis(task());
    assert_eq!(two.kinds(), Kinds::from_iter([Kind::Format, Kind::Terminal]));
}

#[test]
fn constraints_in_natural_language_need_a_member_that_reads_them() {
    let reader = |answer| Says { answer, reads: true, kind: Kind::Invariant };
    assert!(ensemble([says(0, &[]), reader(Ok((0, Vec::new())))]).reads_words());
    assert!(
        !ensemble([says(0, &[]), says(0, &[]), reader(Ok((0, Vec::new())))]).reads_words(),
        "it would be outvoted"
    );

    let words = json!({
        "statement": "Greet.",
        "constraints": [{"name": "polite", "severity": "major", "text": "Be polite."}],
    });
    let problem = Custom::read(&words).expect("a problem").problem();
    let polite = Trajectory::new(problem.start(), &LIMITS);

    let deaf = ensemble([says(0, &[]), reader(Err(Failure::Timeout))]);
    assert!(block_on(deaf.judge(&polite, "hello")).is_err(), "nobody has read the words");
    assert!(block_on(deaf.judge(&trajectory(), "x")).is_ok(), "there are none");
}

#[test]
fn member_names_are_unique() {
    let member =
        |name: &str| EnsembleMember { name: name.to_owned(), verifier: Arc::new(says(0, &[])) };
    for (members, part) in [
        (vec![], "at least one"),
        (vec![member("a"), member("b"), member("a")], "two members called `a`"),
    ] {
        let error = EnsembleVerifier::new(members, Score::ZERO).err().expect(part);
        assert!(error.to_string().contains(part), "{error}");
    }
}
