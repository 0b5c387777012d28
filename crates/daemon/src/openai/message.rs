//! The problem in the messages of a chat completion: a run request as JSON in the last user
//! message, or prose.

use serde_json::{Map, Value};

use super::request::{Message, Role};
use crate::error::ApiError;
use prime_problems::lossy;
use prime_service::requests::RunRequest;

/// Fields of a line of the benchmark that a run request does not have.
const LINE_FIELDS: [&str; 7] =
    ["id", "task_id", "category", "answer", "steps", "actions", "states"];

/// Fields of a run request that select the problem.
const PROBLEM_FIELDS: [&str; 2] = ["task", "problem"];

#[derive(Clone, Debug)]
pub enum ChatTask {
    /// A run request, as for `POST /v1/runs`.
    Run(Box<RunRequest>),
    /// Prose: the system's messages, then the user's.
    Text(String),
}

/// The name of a message's content in errors.
fn content_of(index: usize) -> String {
    format!("messages[{index}].content")
}

/// A message's text.
fn text_of(index: usize, message: &Message) -> Result<String, ApiError> {
    let refuse = |detail: String| {
        ApiError::bad_field(
            &content_of(index),
            format!("{detail}; give a text or a list of {{\"type\": \"text\"}} parts"),
        )
    };

    match &message.content {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut texts = Vec::with_capacity(parts.len());
            for (at, part) in parts.iter().enumerate() {
                let text = part["text"].as_str().filter(|_| part["type"] == "text");
                texts.push(text.ok_or_else(|| refuse(format!("part {at} is not text")))?);
            }
            Ok(texts.join("\n"))
        }
        None | Some(Value::Null) => Err(refuse("is missing".to_owned())),
        Some(_) => Err(refuse("is of another type".to_owned())),
    }
}

/// The index of the last user message.
///
/// # Errors
/// 400 when there is none.
pub fn last_of_user(messages: &[Message]) -> Result<usize, ApiError> {
    let last = messages.iter().rposition(|message| message.role == Role::User);
    last.ok_or_else(|| {
        ApiError::bad_field("messages", "has no message of role user with the problem to solve")
    })
}

/// The task in the messages, and the part of the request that has it.
///
/// # Errors
/// 400 with the invalid message.
pub fn task_of(messages: &[Message]) -> Result<(ChatTask, String), ApiError> {
    let last = last_of_user(messages)?;
    let source = content_of(last);
    let text = text_of(last, &messages[last])?;

    if text.trim().is_empty() {
        return Err(ApiError::bad_field(&source, "is empty, but must have the problem to solve"));
    }

    if let Some(object) = object_in(&text).map_err(|detail| ApiError::bad_field(&source, detail))? {
        let request = request_of(object).map_err(|detail| ApiError::bad_field(&source, detail))?;
        return Ok((ChatTask::Run(Box::new(request)), source));
    }
    // Prose: what the system's messages say belongs to the problem.
    let mut words = Vec::new();
    for (index, message) in messages[..last].iter().enumerate() {
        if matches!(message.role, Role::System | Role::Developer) {
            words.push(text_of(index, message)?);
        }
    }
    words.push(text);
    Ok((ChatTask::Text(words.join("\n\n")), source))
}

/// The object with the problem: the whole text, or the first one in a JSON fence.
fn object_in(text: &str) -> Result<Option<Map<String, Value>>, String> {
    let named = |value: Value| match value {
        Value::Object(object) if PROBLEM_FIELDS.iter().any(|field| object.contains_key(*field)) => {
            Some(object)
        }
        _ => None,
    };

    let kept = |object: Option<Map<String, Value>>, text: &str| match lossy(text) {
        Some(lost) if object.is_some() => Err(format!("at {}: {lost}", lost.path)),
        _ => Ok(object),
    };

    match serde_json::from_str(text) {
        Ok(value) => return kept(named(value), text),
        // Malformed JSON, not prose.
        Err(error)
            if text.trim_start().starts_with('{')
                && PROBLEM_FIELDS.iter().any(|field| text.contains(&format!("\"{field}\""))) =>
        {
            return Err(format!("begins like JSON, but is malformed: {error}"));
        }
        Err(_) => {}
    }
    // Not the whole text, so perhaps a fence in prose. A fence that holds something else does not
    // end the search.
    let mut rest = text;
    while let Some((_, fence)) = rest.split_once("```json") {
        rest = fence;
        let mut values = serde_json::Deserializer::from_str(fence).into_iter();
        let Some(Ok(value)) = values.next() else { continue };
        let is_closed = fence[values.byte_offset()..].trim_start().starts_with("```");
        if let Some(object) = named(value).filter(|_| is_closed) {
            return kept(Some(object), &fence[..values.byte_offset()]);
        }
    }
    Ok(None)
}

/// Reads an object as a run request. A line of the benchmark becomes the input of its task.
fn request_of(object: Map<String, Value>) -> Result<RunRequest, String> {
    let names_task = object.contains_key("task");
    if names_task && LINE_FIELDS.iter().any(|field| object.contains_key(*field)) {
        let Some(task) = object["task"].as_str().map(str::to_owned) else {
            return Err("the line of the benchmark has a `task` that is not text".to_owned());
        };
        if !object.get("input").is_some_and(Value::is_object) {
            return Err("the line of the benchmark has no `input`, an object".to_owned());
        }
        return Ok(RunRequest {
            task: Some(task),
            input: Some(Value::Object(object)),
            ..RunRequest::default()
        });
    }

    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let path = error.path().to_string();
        format!("`{path}` of the JSON object in it: {}", error.into_inner())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(value: Value) -> Vec<Message> {
        serde_json::from_value(value).unwrap()
    }

    fn user(text: &str) -> Vec<Message> {
        messages(json!([{"role": "user", "content": text}]))
    }

    fn run(text: &str) -> RunRequest {
        match task_of(&user(text)) {
            Ok((ChatTask::Run(request), place)) => {
                assert_eq!(place, "messages[0].content");
                *request
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_run_request_is_the_whole_text_or_fenced() {
        let request = r#"{"task": "n-queens", "difficulty": "easy", "index": 3}"#;
        for text in [
            request.to_owned(),
            format!("\n {request} \n"),
            format!("Please solve\n```json\n{request}\n```\nand be quick"),
            format!("```json{request}```"),
            format!("```json\n{{\"other\": 1}}\n```\nnot this, but\n```json\n{request}\n```"),
        ] {
            let read = run(&text);
            assert_eq!((read.task.as_deref(), read.index), (Some("n-queens"), Some(3)), "{text}");
        }
    }

    #[test]
    fn a_number_that_would_lose_digits_is_refused_with_its_place() {
        let request = r#"{"task": "x", "input": {"n": [18446744073709551616]}}"#;
        for text in [request.to_owned(), format!("Please solve\n```json\n{request}\n```")] {
            let error = task_of(&user(&text)).unwrap_err().to_string();
            assert!(
                error.contains("at input.n[0]: the integer 18446744073709551616 is"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_line_of_the_benchmark_is_the_input_of_its_task() {
        let line = json!({
            "id": "n-queens/easy/000", "task": "n-queens", "task_id": 5, "category": "classic_puzzles",
            "difficulty": "easy", "index": 0, "seed": 77, "input": {"n": 4}, "answer": {}, "steps": 3
        });

        let read = run(&line.to_string());
        assert_eq!((read.task.as_deref(), &read.input), (Some("n-queens"), &Some(line)));
        assert_eq!(
            (read.difficulty, read.index, read.seed),
            (None, None, None),
            "its seed is not the run's"
        );
    }

    #[test]
    fn parts_of_a_text_are_one_text() {
        let parts = json!([{"type": "text", "text": "{\"task\":"}, {"type": "text", "text": "\"n-queens\"}"}]);
        let (read, _) = task_of(&messages(json!([{"role": "user", "content": parts}]))).unwrap();
        assert!(
            matches!(read, ChatTask::Run(request) if request.task.as_deref() == Some("n-queens"))
        );
    }

    #[test]
    fn the_last_message_of_a_user_counts() {
        let all = messages(json!([
            {"role": "user", "content": "{\"task\": \"bubble-sort\"}"},
            {"role": "assistant", "content": null},
            {"role": "user", "content": "{\"task\": \"n-queens\"}"},
            {"role": "assistant", "content": "begin"},
        ]));

        let (read, place) = task_of(&all).unwrap();
        assert_eq!(place, "messages[2].content");
        assert!(
            matches!(read, ChatTask::Run(request) if request.task.as_deref() == Some("n-queens"))
        );
    }

    #[test]
    fn other_texts_are_prose_after_the_system_messages() {
        let all = messages(json!([
            {"role": "system", "content": "Be exact."},
            {"role": "assistant", "content": 5},
            {"role": "developer", "content": [{"type": "text", "text": "In JSON."}]},
            {"role": "user", "content": "What is 2 + 2?"},
        ]));

        let (read, _) = task_of(&all).unwrap();
        assert!(
            matches!(read, ChatTask::Text(words) if words == "Be exact.\n\nIn JSON.\n\nWhat is 2 + 2?")
        );

        for text in [
            "{\"a\": 1}",
            "[1]",
            "{a} and {b}",
            "```json\n{\"a\": 1}\n```",
            "```json\n{\"task\": 1",
            "5",
        ] {
            assert!(
                matches!(task_of(&user(text)), Ok((ChatTask::Text(words), _)) if words == text),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_messages_are_named() {
        for (content, part) in [
            (json!(""), "is empty"),
            (json!(" \n"), "is empty"),
            (json!(null), "is missing"),
            (json!(5), "another type"),
            (json!([{"type": "image_url", "image_url": {"url": "x"}}]), "part 0 is not text"),
            (json!([{"type": "text"}]), "part 0 is not text"),
            (json!("{\"task\": \"n-queens\""), "begins like JSON, but is malformed"),
            (json!("{\"task\": \"n-queens\", \"fan_out\": 2}"), "`fan_out`"),
            (json!("{\"task\": 5}"), "`task`"),
            (json!("{\"problem\": {\"statement\": \"x\"}"), "begins like JSON, but is malformed"),
            (json!("{\"problem\": {}, \"answer\": 1}"), "`answer`"),
            (json!("{\"task\": \"n-queens\", \"id\": \"x\"}"), "no `input`"),
            (json!("{\"task\": 5, \"id\": \"x\", \"input\": {}}"), "not text"),
        ] {
            let error =
                task_of(&messages(json!([{"role": "user", "content": content}]))).unwrap_err();
            assert_eq!(
                error.body().error.param.as_deref(),
                Some("messages[0].content"),
                "{content}"
            );
            assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
        }

        let error = task_of(&messages(json!([{"role": "system", "content": "x"}]))).unwrap_err();
        assert_eq!(error.body().error.param.as_deref(), Some("messages"));
    }
}
