//! Answers are parsed strictly, by role.

use super::super::answer::{proposal, ruling, verdict};
use crate::{Failure, Proposal};
use prime_protocol::{Decision, Score, Usage, Verdict};

#[test]
fn proposals_are_parsed() {
    let plain = Proposal { line: "move 1 0 2".to_owned(), ..Proposal::default() };
    assert_eq!(proposal(br#"{"id":1,"action":"move 1 0 2"}"#), Ok(plain));

    let full = br#"{"id":1,"action":"","derivation":"so","logprob":-0.5,"usage":{"prompt":7,"completion":2}}"#;
    let expected = Proposal {
        derivation: "so".to_owned(),
        logprobs: vec![-0.5],
        usage: Usage::new(7, 2),
        ..Proposal::default()
    };
    assert_eq!(
        proposal(full),
        Ok(expected),
        "an empty line is not an action, which the machine finds out"
    );
}

#[test]
fn verdicts_are_parsed() {
    let score = |value| Score::from_value(value).expect("a score");
    let rows: [(&str, f64, &[&str]); 5] = [
        (r#"{"id":1,"valid":true}"#, 0.0, &[]),
        (r#"{"id":1,"valid":false}"#, 1.0, &[]),
        (r#"{"id":1,"valid":false,"violations":["goal"]}"#, 1.0, &["goal"]),
        (r#"{"id":1,"score":0.6,"violations":["a","b"],"feedback":null}"#, 0.6, &["a", "b"]),
        (r#"{"id":1,"score":1000}"#, 1000.0, &[]),
    ];
    for (line, value, violations) in rows {
        let violations = violations.iter().map(|name| (*name).into()).collect();
        let expected = Verdict { score: score(value), violations, ..Verdict::default() };
        assert_eq!(verdict(line.as_bytes()), Ok(expected), "{line}");
    }

    let full =
        verdict(br#"{"id":1,"score":0.2,"feedback":"no","logprob":-1,"usage":{"prompt":3}}"#)
            .expect("a verdict");
    assert_eq!((full.feedback.as_deref(), full.logprob), (Some("no"), Some(-1.0)));
    assert_eq!(full.usage, Usage::new(3, 0));
}

#[test]
fn rulings_are_parsed() {
    let rows = [
        ("proceed", Decision::Proceed),
        ("retry", Decision::Retry),
        ("backtrack", Decision::Backtrack),
    ];
    for (word, decision) in rows {
        let line = format!(r#"{{"id":1,"decision":"{word}"}}"#);
        assert_eq!(ruling(line.as_bytes()).map(|ruling| ruling.decision), Ok(decision));
    }
}

/// The failure and the reason of an invalid answer.
fn failure<A: std::fmt::Debug>(
    answer: Result<A, super::super::fault::ProcessFault>,
) -> (Failure, String) {
    let fault = answer.expect_err("no answer");
    (fault.failure, fault.reason)
}

#[test]
fn invalid_answers_are_malformed() {
    let executor = [
        r#"{"id":1}"#,
        r#"{"id":1,"action":7}"#,
        r#"{"id":1,"action":null}"#,
        r#"{"id":1,"action":"a\nb"}"#,
        r#"{"id":1,"action":"a\r"}"#,
        r#"{"id":1,"action":"a","action":"b"}"#,
        r#"{"id":1,"action":"a","colour":"red"}"#,
        r#"{"id":1,"action":"a","logprob":0.5}"#,
        r#"{"id":1,"action":"a","logprob":NaN}"#,
        r#"{"id":1,"action":"a","usage":{"prompt":-1}}"#,
        r#"{"id":1,"action":"a","usage":{"prompt":18446744073709551615}}"#,
        r#"{"id":1,"action":"a","error":"b"}"#,
        r#"{"id":1,"action":"a","retry":true}"#,
        r#"{"id":1,"action":"a"} x"#,
        r#"{"id":1,"valid":true}"#,
    ];
    for line in executor {
        assert_eq!(failure(proposal(line.as_bytes())).0, Failure::Malformed, "{line}");
    }

    let many = format!(r#"{{"id":1,"score":1,"violations":[{}"a"]}}"#, r#""a","#.repeat(64));
    let long = format!(r#"{{"id":1,"score":1,"violations":["{}"]}}"#, "a".repeat(201));
    let verifier = [
        r#"{"id":1}"#,
        r#"{"id":1,"score":-0.1}"#,
        r#"{"id":1,"score":1000.1}"#,
        r#"{"id":1,"score":1e999}"#,
        r#"{"id":1,"score":NaN}"#,
        r#"{"id":1,"score":Infinity}"#,
        r#"{"id":1,"score":"0.5"}"#,
        r#"{"id":1,"score":0.5,"valid":false}"#,
        r#"{"id":1,"valid":1}"#,
        r#"{"id":1,"valid":true,"violations":["a"]}"#,
        r#"{"id":1,"score":0,"violations":["a"]}"#,
        r#"{"id":1,"score":1,"violations":"a"}"#,
        r#"{"id":1,"score":1,"violations":[""]}"#,
        r#"{"id":1,"score":1,"violations":["a\u0000"]}"#,
        many.as_str(),
        long.as_str(),
        r#"{"id":1,"score":1,"feedback":["no"]}"#,
        r#"{"id":1,"action":"a"}"#,
    ];
    for line in verifier {
        assert_eq!(failure(verdict(line.as_bytes())).0, Failure::Malformed, "{line}");
    }

    let coordinator =
        [r#"{"id":1}"#, r#"{"id":1,"decision":"Proceed"}"#, r#"{"id":1,"decision":"stop"}"#];
    for line in coordinator {
        assert_eq!(failure(ruling(line.as_bytes())).0, Failure::Malformed, "{line}");
    }
}

#[test]
fn messages_quote_the_beginning_of_the_line() {
    let line = format!(r#"{{"id":1,"colour":"{}"}}"#, "é".repeat(500));
    let (_, reason) = failure(proposal(line.as_bytes()));
    assert!(reason.contains("unknown field `colour`"), "{reason}");
    let shown = format!(r#"{{"id":1,"colour":"{}"#, "é".repeat(120 - 18));
    assert!(reason.ends_with(&format!("{shown:?}…")), "{reason}");
}

#[test]
fn a_program_may_answer_with_an_error() {
    let rows = [
        (r#"{"id":1,"error":"busy"}"#, Failure::ServerError),
        (r#"{"id":1,"error":"busy","retry":true}"#, Failure::ServerError),
        (r#"{"id":1,"error":"busy","retry":false}"#, Failure::Unsupported),
    ];
    for (line, expected) in rows {
        let line = line.as_bytes();
        for (found, reason) in
            [failure(proposal(line)), failure(verdict(line)), failure(ruling(line))]
        {
            assert_eq!((found, reason.as_str()), (expected, "it said: busy"));
        }
    }
}
