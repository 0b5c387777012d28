//! Parses vLLM's answers to `/score` and `/pooling`. Pure.

use std::sync::Arc;

use serde_json::Value;

use super::response::{ResponseError, answer};
use super::usage::usage;
use crate::model::Completion;

/// The only entry of the list `data`.
fn only(answer: &Value) -> Result<&Value, ResponseError> {
    let data = answer.get("data").and_then(Value::as_array);
    match data.map(Vec::as_slice) {
        Some([entry]) => Ok(entry),
        Some(entries) => Err(ResponseError::Scores(entries.len())),
        None => Err(ResponseError::NoScore("data[0]")),
    }
}

fn completion(answer: &Value, score: f64, source: &Arc<str>) -> Completion {
    Completion {
        usage: usage(answer, 0),
        score: Some(score),
        source: Some(Arc::clone(source)),
        ..Completion::default()
    }
}

/// The answer to `/score`: `{"data": [{"score": 0.7}], …}`.
pub(super) fn score(body: &[u8], source: &Arc<str>) -> Result<Completion, ResponseError> {
    let answer = answer(body)?;
    // Numbers in JSON are finite: what is too large does not parse, and `NaN` is no JSON.
    let score = only(&answer)?["score"].as_f64();
    let score = score.ok_or(ResponseError::NoScore("data[0].score"))?;
    Ok(completion(&answer, score, source))
}

/// The answer to `/pooling`: `{"data": [{"data": [0.7]}], …}` for the whole text, or a list of such
/// lists, one for each token, of which the last one counts.
pub(super) fn pooled(body: &[u8], source: &Arc<str>) -> Result<Completion, ResponseError> {
    const PLACE: &str = "data[0].data";
    let answer = answer(body)?;

    let mut values = only(&answer)?["data"].as_array().ok_or(ResponseError::NoScore(PLACE))?;
    if let Some(last) = values.last().and_then(Value::as_array) {
        values = last;
    }
    let score = match values.as_slice() {
        [value] => value.as_f64().ok_or(ResponseError::NoScore(PLACE))?,
        values => return Err(ResponseError::Values(values.len())),
    };
    Ok(completion(&answer, score, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_protocol::Usage;

    type Read = fn(&[u8], &Arc<str>) -> Result<Completion, ResponseError>;

    fn of(read: Read, body: &str) -> Result<f64, ResponseError> {
        read(body.as_bytes(), &"s".into()).map(|found| found.score.expect("a score"))
    }

    #[test]
    fn vllms_answers_have_one_score() {
        let body = r#"{"id": "score-1", "object": "list", "model": "m",
            "data": [{"index": 0, "object": "score", "score": -1.25}],
            "usage": {"prompt_tokens": 31, "total_tokens": 31, "completion_tokens": 0}}"#;
        let found = score(body.as_bytes(), &"s".into()).unwrap();
        assert_eq!(found.score, Some(-1.25));
        assert_eq!(found.usage, Usage::new(31, 0));
        assert_eq!(found.source.as_deref(), Some("s"));

        let whole = r#"{"data": [{"index": 0, "object": "pooling", "data": [0.75]}]}"#;
        assert_eq!(of(pooled, whole), Ok(0.75));
        let by_token = r#"{"data": [{"data": [[0.5], [0.25], [2]]}]}"#;
        assert_eq!(of(pooled, by_token), Ok(2.0), "the last token");
    }

    #[test]
    fn bad_answers_are_named() {
        use ResponseError::{Empty, Error, NoScore, NotJson, Scores, Values};
        let no_score = || NoScore("data[0].score");
        for (body, expected) in [
            ("", Empty),
            ("<html>busy</html>", NotJson(1)),
            (r#"{"data": [{"score": NaN}]}"#, NotJson(21)),
            (r#"{"error": {"message": "no model"}}"#, Error("no model".to_owned())),
            ("{}", NoScore("data[0]")),
            (r#"{"data": {"score": 1}}"#, NoScore("data[0]")),
            (r#"{"data": []}"#, Scores(0)),
            (r#"{"data": [{"score": 1}, {"score": 2}]}"#, Scores(2)),
            (r#"{"data": [{}]}"#, no_score()),
            (r#"{"data": [{"score": null}]}"#, no_score()),
            (r#"{"data": [{"score": "0.7"}]}"#, no_score()),
        ] {
            assert_eq!(of(score, body), Err(expected), "{body}");
        }
        for (body, expected) in [
            (r#"{"data": [{"data": []}]}"#, Values(0)),
            (r#"{"data": [{"data": [0.1, 0.9]}]}"#, Values(2)),
            (r#"{"data": [{"data": [[0.1], []]}]}"#, Values(0)),
            (r#"{"data": [{"data": [null]}]}"#, NoScore("data[0].data")),
            (r#"{"data": [{"data": "AACAPw=="}]}"#, NoScore("data[0].data")),
        ] {
            assert_eq!(of(pooled, body), Err(expected), "{body}");
        }
    }
}
