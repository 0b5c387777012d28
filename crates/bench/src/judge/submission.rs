//! One line of a file of submissions: the instance and its submission.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::Value;

use super::actions::ActionList;
pub use crate::tasks::INDEX_LIMIT;
use crate::tasks::{self, InstanceId};

/// A submission for an instance.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The instance that the submission is for.
    pub id: InstanceId,
    /// What was submitted for it.
    pub body: Body,
}

/// The content of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A model's free text.
    Text(String),
    /// Action lines and answer, either of which may be missing.
    Structured {
        /// The action lines, as submitted.
        actions: Option<ActionList>,
        /// The answer, as submitted.
        answer: Option<Value>,
    },
    /// Neither, for this reason. It counts as wrong: the instance was asked.
    Unreadable(String),
}

/// The fields that are read. Others are ignored: a generated line has many.
#[derive(Deserialize)]
struct Line {
    id: Option<String>,
    output: Option<String>,
    actions: Option<ActionList>,
    answer: Option<Value>,
    /// The seed of a generated line, from which its base seed follows; other lines may have any
    /// `seed`.
    seed: Option<Value>,
}

/// Refuses a line that was generated with another base seed: every judgement of it would be wrong.
fn check_seed(seed: Option<&Value>, id: &InstanceId) -> Result<(), String> {
    /// The factor of the base seed in `Spec::seed`.
    const INSTANCES_OF_BASE_SEED: u64 = 1_000_000;

    let (Some(seed), own) = (seed.and_then(Value::as_u64), id.seed()) else { return Ok(()) };
    // A `seed` whose last six digits are not this instance's is some other number of the client's.
    let is_generated = seed >= INSTANCES_OF_BASE_SEED
        && seed % INSTANCES_OF_BASE_SEED == own % INSTANCES_OF_BASE_SEED;
    if seed == own || !is_generated {
        return Ok(());
    }

    let base_seed = seed / INSTANCES_OF_BASE_SEED;
    Err(format!(
        "the line is of base seed {base_seed}, not {}: judge it with --base-seed {base_seed}",
        id.base_seed
    ))
}

/// Why a line is not a submission. Parses it again, tracking the path.
fn mistake(text: &str) -> String {
    if !text.trim_start().starts_with('{') {
        return "not a JSON object: a submission reads {\"id\": …, \"output\": …}".to_owned();
    }
    let mut json = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Line>(&mut json) {
        Err(error) if error.inner().is_data() => {
            format!("field `{}`: {}", error.path(), error.inner())
        }
        Err(error) => format!("not a JSON object: {}", error.inner()),
        Ok(_) => "not a JSON object: more text follows it".to_owned(),
    }
}

fn read_id(text: &str, base_seed: u64) -> Result<InstanceId, String> {
    const FORM: &str = "an id reads <task>/<difficulty>/<index>, such as bubble-sort/easy/007";

    let parts: Vec<&str> = text.split('/').collect();
    let [slug, difficulty, index] = parts[..] else {
        return Err(format!("field `id`: {text:?}: {FORM}"));
    };

    let task = tasks::find(slug).map_err(|error| format!("field `id`: {error}"))?;
    let difficulty = difficulty.parse().map_err(|error| format!("field `id`: {error}"))?;
    // Nine digits always fit 32 bits.
    let digits =
        !index.is_empty() && index.len() <= 9 && index.bytes().all(|byte| byte.is_ascii_digit());
    let number =
        digits.then(|| index.parse::<u32>().ok()).flatten().filter(|index| *index < INDEX_LIMIT);
    let index = number.ok_or_else(|| {
        format!("field `id`: index {index:?} is not a number below {INDEX_LIMIT}: {FORM}")
    })?;
    Ok(InstanceId { task, difficulty, index, base_seed })
}

/// The text with escapes of lone surrogates, which are not characters, replaced as Unicode says.
/// Python writes them where an output was cut within a character.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
        // Other escapes are matched so that `\\ud800` is not taken for one.
        Regex::new(r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u(d[89a-f][0-9a-f]{2})|\\.")
            .expect("invariant: the pattern is right, as a test shows")
    });

    ESCAPES.replace_all(text, |found: &Captures<'_>| match found.get(1) {
        Some(_) => "\\ufffd".to_owned(),
        None => found[0].to_owned(),
    })
}

/// The id of a line that is not JSON: it was cut off, or has a fault after its id.
fn id_of_broken(text: &str) -> Option<&str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^\s*\{\s*"id"\s*:\s*"([^"\\]*)""#)
            .expect("invariant: the pattern is right, as a test shows")
    });
    Some(ID.captures(text)?.get(1)?.as_str())
}

/// The fields of a line that may have the wrong types.
#[derive(Deserialize)]
struct LooseLine {
    id: Option<Value>,
    seed: Option<Value>,
}

/// Reads a line whose fields cannot be read: if its id can, the output counts as wrong.
fn read_broken(text: &str, base_seed: u64) -> Result<Submission, String> {
    let reason = mistake(text);
    let loose: Option<LooseLine> = serde_json::from_str(text).ok();

    let id = match &loose {
        Some(LooseLine { id: Some(Value::String(id)), .. }) => Some(id.as_str()),
        Some(_) => None,
        None => id_of_broken(text),
    };
    let Some(id) = id else { return Err(reason) };

    let id = read_id(id, base_seed)?;
    check_seed(loose.as_ref().and_then(|line| line.seed.as_ref()), &id)?;
    Ok(Submission { id, body: Body::Unreadable(reason) })
}

/// Reads a line of a file of submissions: `{"id":…, "output":"…"}` or
/// `{"id":…, "actions":[…], "answer":…}`. A line whose id is known and whose output is missing or
/// cannot be read is a submission too, which is wrong.
///
/// # Errors
/// If the line cannot be attributed to an instance: says which field is wrong and what would be
/// right.
pub fn read_submission(text: &str, base_seed: u64) -> Result<Submission, String> {
    let text = text.trim_start_matches('\u{feff}');
    // Only a line that fails is parsed again, more slowly.
    let line: Result<Line, _> = serde_json::from_str(text);
    let line = line.or_else(|_| serde_json::from_str(&without_lone_surrogates(text)));
    let Ok(line) = line else { return read_broken(text, base_seed) };

    let id = read_id(&line.id.ok_or("field `id` is missing")?, base_seed)?;
    check_seed(line.seed.as_ref(), &id)?;

    let body = match (line.output, line.actions, line.answer) {
        (Some(output), None, None) => Body::Text(output),
        (Some(_), _, _) => {
            Body::Unreadable("give either `output` or `actions` and `answer`, not both".to_owned())
        }
        (None, None, None) => {
            Body::Unreadable("neither `output` nor `actions` nor `answer` is there".to_owned())
        }
        (None, actions, answer) => Body::Structured { actions, answer },
    };
    Ok(Submission { id, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let text = read_submission(r#"{"id":"bubble-sort/easy/007","output":"so {\"a\":1}"}"#, 42)
            .expect("read");
        assert_eq!(
            (text.id.to_string().as_str(), text.id.seed()),
            ("bubble-sort/easy/007", 42_000_007)
        );
        assert_eq!(text.body, Body::Text("so {\"a\":1}".to_owned()));

        let line = r#"{"id":"n-queens/hard/199","actions":["place 0 1"],"answer":{"queens":[]},"extra":1}"#;
        let Body::Structured { actions, answer } = read_submission(line, 42).expect("read").body
        else {
            panic!("structured");
        };
        assert_eq!(
            (actions, answer),
            (Some(["place 0 1"].into_iter().collect()), Some(serde_json::json!({"queens": []})))
        );
    }

    #[test]
    fn lines_of_another_base_seed_are_refused() {
        let line =
            |seed: &str| format!(r#"{{"id":"bubble-sort/medium/007","seed":{seed},"answer":1}}"#);
        let error = read_submission(&line("42001007"), 43).expect_err("another base seed");
        assert!(
            error.contains("base seed 42, not 43") && error.contains("--base-seed 42"),
            "{error}"
        );
        for (seed, base_seed) in [
            ("42001007", 42),
            ("43001007", 43),
            ("7", 43),
            ("1007", 43),
            ("42001008", 43),
            ("null", 43),
        ] {
            assert!(read_submission(&line(seed), base_seed).is_ok(), "{seed}");
        }
    }

    #[test]
    fn lines_that_cannot_be_attributed_name_the_field() {
        for (line, wanted) in [
            ("", "not a JSON object"),
            ("[1]", "not a JSON object"),
            (r#"{"output":"x"}"#, "`id` is missing"),
            (r#"{"id":7,"output":"x"}"#, "`id`: invalid type: integer `7`"),
            (r#"{"output":"x","id":"bubble-sort/easy/0"#, "not a JSON object"),
            (r#"{"id":"buble-sort/easy/007","output":"x"}"#, "did you mean `bubble-sort`"),
            (r#"{"id":"buble-sort/easy/007","outp"#, "did you mean `bubble-sort`"),
            (r#"{"id":"bubble-sort/simple/007","output":"x"}"#, "easy, medium or hard"),
            (r#"{"id":"bubble-sort/easy/1000","output":"x"}"#, "below 1000"),
            (r#"{"id":"bubble-sort/easy/-1","output":"x"}"#, "below 1000"),
            (r#"{"id":"bubble-sort/easy","output":"x"}"#, "<task>/<difficulty>/<index>"),
        ] {
            let error = read_submission(line, 42).expect_err(line);
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_read_of_a_known_instance_is_a_wrong_output() {
        for (line, wanted) in [
            (r#"{"id":"bubble-sort/easy/007","out"#, "not a JSON object"),
            (r#"{"id":"bubble-sort/easy/007","answer":NaN}"#, "not a JSON object"),
            (r#"{"id":"bubble-sort/easy/007","output":null}"#, "neither"),
            (r#"{"id":"bubble-sort/easy/007"}"#, "neither"),
            (r#"{"id":"bubble-sort/easy/007","output":"x","actions":[]}"#, "not both"),
            (r#"{"id":"bubble-sort/easy/007","output":["x"]}"#, "`output`: invalid type: sequence"),
            (r#"{"id":"bubble-sort/easy/007","actions":"x"}"#, "`actions`: invalid type: string"),
            (
                r#"{"id":"bubble-sort/easy/007","actions":["done",1]}"#,
                "`actions[1]`: invalid type: integer `1`, expected a text",
            ),
        ] {
            let read = read_submission(line, 42).expect(line);
            assert_eq!(read.id.to_string(), "bubble-sort/easy/007");
            let Body::Unreadable(reason) = read.body else { panic!("{line}") };
            assert!(reason.contains(wanted), "{line}: {reason}");
        }
    }

    #[test]
    fn what_is_no_character_is_replaced() {
        let text = |output: &str| {
            let line =
                format!("\u{feff}{{\"id\":\"bubble-sort/easy/007\",\"output\":\"{output}\"}}");
            match read_submission(&line, 42).expect("read").body {
                Body::Text(text) => text,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(text(r"a\ud800b"), "a\u{fffd}b");
        assert_eq!(text(r"\uDC00\ud83d\ude00\ud83d"), "\u{fffd}\u{1f600}\u{fffd}");
        assert_eq!(text(r"\ud800\\ud800"), "\u{fffd}\\ud800");
    }
}
