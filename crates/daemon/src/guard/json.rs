//! Parses bodies that are JSON objects. Errors have the path of the invalid field.

use serde::de::DeserializeOwned;

use crate::error::ApiError;
use prime_problems::lossy;

/// Parses a body that must be one JSON object. serde_json limits nesting to 128 levels, so that no
/// input exhausts the stack.
///
/// # Errors
/// 400: with the field's path when a value is invalid or would not be read as it stands, without when
/// the body is not a JSON object.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let not_json = |error: &serde_json::Error| {
        ApiError::bad_request(format!("the body is not a JSON object: {error}"))
    };

    let is_list = bytes.trim_ascii_start().first() == Some(&b'[');
    if is_list {
        // serde would read its elements as the fields in their order.
        return Err(ApiError::bad_request("the body is not a JSON object: it is a list"));
    }

    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner();
        // Malformed JSON has no fields.
        if !error.is_data() || bytes.trim_ascii_start().first() != Some(&b'{') {
            return not_json(&error);
        }
        match field_of(&field, &error.to_string()) {
            Some(field) => ApiError::bad_field(&field, error),
            None => ApiError::bad_request(format!("body: {error}")),
        }
    })?;

    // Text after the object is an error too.
    json.end().map_err(|error| not_json(&error))?;
    check_lossless(bytes)?;
    Ok(value)
}

/// The field of an error at this path, `.` for the root. One that is missing or comes twice has the
/// path of its object, and its name stands in serde's message alone.
pub(crate) fn field_of(path: &str, message: &str) -> Option<String> {
    let named = ["missing field `", "duplicate field `"]
        .iter()
        .find_map(|begin| message.strip_prefix(begin)?.split_once('`'))
        .map(|(name, _)| name);

    match (path, named) {
        (".", name) => name.map(str::to_owned),
        (path, None) => Some(path.to_owned()),
        (path, Some(name)) => Some(format!("{path}.{name}")),
    }
}

/// Checks that a body that is JSON is read as it stands: no integer loses digits, and no field stands
/// twice in one object.
///
/// # Errors
/// 400 with the path of the first one that is not.
fn check_lossless(bytes: &[u8]) -> Result<(), ApiError> {
    match std::str::from_utf8(bytes).ok().and_then(lossy) {
        None => Ok(()),
        Some(lost) if lost.path.is_empty() => Err(ApiError::bad_request(format!("body: {lost}"))),
        Some(lost) => Err(ApiError::bad_field(&lost.path, &lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        task: String,
        #[serde(default)]
        budget: Budget,
        input: Option<Value>,
        limit: Option<Limit>,
        #[serde(default)]
        limits: Vec<Limit>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Limit {
        most: u64,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Budget {
        steps: Option<u64>,
    }

    #[test]
    fn an_object_is_read() {
        let read: Request = json(b" {\"task\": \"x\", \"budget\": {\"steps\": 3}} ").unwrap();
        assert_eq!(
            read,
            Request {
                task: "x".to_owned(),
                budget: Budget { steps: Some(3) },
                input: None,
                limit: None,
                limits: Vec::new(),
            }
        );
    }

    #[test]
    fn errors_name_the_path_of_the_field() {
        for (text, field, part) in [
            ("{\"task\": 5}", Some("task"), "field `task`: invalid type"),
            ("{\"task\": \"x\", \"budget\": {\"steps\": -1}}", Some("budget.steps"), "-1"),
            (
                "{\"task\": \"x\", \"budget\": {\"stesp\": 1}}",
                Some("budget.stesp"),
                "unknown field",
            ),
            ("{}", Some("task"), "field `task`: missing field `task`"),
            ("{\"task\": \"x\", \"colour\": 1}", Some("colour"), "unknown field"),
            ("{\"task\": \"x\", \"task\": \"y\"}", Some("task"), "duplicate field `task`"),
            (
                "{\"task\": \"x\", \"budget\": {\"steps\": 1, \"steps\": 2}}",
                Some("budget.steps"),
                "duplicate field `steps`",
            ),
            ("{\"task\": \"x\", \"limit\": {}}", Some("limit.most"), "missing field `most`"),
            (
                "{\"task\": \"x\", \"limits\": [{\"most\": 1}, {}]}",
                Some("limits[1].most"),
                "missing",
            ),
            ("", None, "the body is not a JSON object"),
            ("{", None, "the body is not a JSON object"),
            ("[]", None, "the body is not a JSON object"),
            (" [\"x\", {}, null]", None, "the body is not a JSON object"),
            ("{\"task\": \"x\"} x", None, "the body is not a JSON object: trailing characters"),
            ("\u{0}", None, "the body is not a JSON object"),
        ] {
            let error = json::<Request>(text.as_bytes()).unwrap_err().body().error;
            assert_eq!(error.field.as_deref(), field, "{text}");
            assert!(error.message.contains(part), "{text}: {}", error.message);
        }
    }

    #[test]
    fn an_integer_that_would_lose_digits_is_refused_with_its_place() {
        let read = |number: &str| {
            json::<Request>(
                format!("{{\"task\": \"x\", \"input\": [{{\"n\": {number}}}]}}").as_bytes(),
            )
        };
        for kept in ["18446744073709551615", "-9223372036854775808", "1e30"] {
            assert!(read(kept).is_ok(), "{kept}");
        }
        for lost in ["18446744073709551616", "-9223372036854775809"] {
            let error = read(lost).unwrap_err().body().error;
            assert_eq!(error.field.as_deref(), Some("input[0].n"));
            assert_eq!(
                error.message,
                format!(
                    "field `input[0].n`: the integer {lost} is outside -2^63 to 2^64-1 and would \
                     lose digits; write it as a text"
                )
            );
        }
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_with_its_place() {
        let text = r#"{"task": "x", "input": [{"n": 1, "m": 2, "n": 3}]}"#;
        let error = json::<Request>(text.as_bytes()).unwrap_err().body().error;
        assert_eq!(error.field.as_deref(), Some("input[0].n"));
        assert_eq!(
            error.message,
            "field `input[0].n`: the field `n` stands twice in one object, and only the last one \
             would be read: leave out the other"
        );
    }

    #[test]
    fn deep_nesting_is_refused() {
        let nested = |depth: usize| {
            format!("{{\"task\": \"x\", \"input\": {}{}}}", "[".repeat(depth), "]".repeat(depth))
        };
        assert!(json::<Request>(nested(100).as_bytes()).is_ok());
        for depth in [200, 100_000] {
            let error = json::<Request>(nested(depth).as_bytes()).unwrap_err();
            assert!(error.to_string().contains("recursion limit exceeded"), "{error}");
        }
    }
}
