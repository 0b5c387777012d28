//! Parses the text of an answer into a value.

use serde_json::Value;

use super::definition::AnswerForm;
use super::error::Fault;
use super::integers::lossy_number;
use super::limits::JSON_DEPTH_MAX;
use super::pattern::Pattern;
use super::schema::Schema;
use prime_bench::tasks::Refusal;

/// The required form of an answer.
#[derive(Debug)]
pub enum Answers {
    /// Any non-empty text.
    Text,
    Pattern(Pattern),
    Schema(Schema),
}

/// A line that is not an answer, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub refusal: Refusal,
    pub detail: String,
}

impl Refused {
    pub fn form(detail: impl Into<String>) -> Self {
        Self { refusal: Refusal::Unparsable, detail: detail.into() }
    }

    pub fn illegal(reason: &'static str) -> Self {
        Self { refusal: Refusal::Illegal(reason), detail: reason.to_owned() }
    }
}

/// Nesting depth of a value; a value that is not nested has 0. Descends at most `left` levels, so
/// that a caller passes one more than its limit.
pub fn depth_of(value: &Value, left: usize) -> usize {
    let below = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| depth_of(value, left - 1)).max()
    };

    match value {
        _ if left == 0 => 1,
        Value::Array(values) => 1 + below(&mut values.iter()).unwrap_or(0),
        Value::Object(fields) => 1 + below(&mut fields.values()).unwrap_or(0),
        _ => 0,
    }
}

impl Answers {
    pub fn new(form: Option<&AnswerForm>) -> Result<Self, Fault> {
        Ok(match form {
            None => Self::Text,
            Some(AnswerForm::Pattern(pattern)) => Self::Pattern(Pattern::whole(pattern)?),
            Some(AnswerForm::Schema(schema)) => Self::Schema(Schema::new(schema)?),
        })
    }

    /// Parses a text, ignoring surrounding whitespace.
    pub fn read(&self, text: &str) -> Result<Value, Refused> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Refused::form("the answer is empty"));
        }

        match self {
            Self::Text => Ok(Value::String(text.to_owned())),
            Self::Pattern(pattern) if pattern.matches(text) => Ok(Value::String(text.to_owned())),
            Self::Pattern(_) => Err(Refused::illegal("the answer does not match the pattern")),
            Self::Schema(schema) => {
                let value: Value = serde_json::from_str(text)
                    .map_err(|error| Refused::form(format!("the answer is not JSON: {error}")))?;

                // The value has lost the digits already, and might pass for another one.
                if let Some(lossy) = lossy_number(text) {
                    let place = if lossy.path.is_empty() { "" } else { ", at " };
                    let detail = format!("the answer{place}{}: {lossy}", lossy.path);
                    return Err(Refused::form(detail));
                }

                // Before the schema, whose check recurses.
                if depth_of(&value, JSON_DEPTH_MAX + 1) > JSON_DEPTH_MAX {
                    return Err(Refused::illegal("the answer is nested too deep"));
                }

                schema.check(&value).map_err(|detail| Refused {
                    refusal: Refusal::Illegal("the answer is not valid under the schema"),
                    detail: format!("the answer is not valid under the schema: {detail}"),
                })?;
                Ok(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(form: Option<&AnswerForm>, text: &str) -> Result<Value, Refusal> {
        Answers::new(form).expect("a form").read(text).map_err(|refused| refused.refusal)
    }

    #[test]
    fn an_integer_that_cannot_be_kept_is_no_answer() {
        let any = AnswerForm::Schema(json!(true));
        for (text, value) in [
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1e15", json!(1e15)),
            ("\"18446744073709551616\"", json!("18446744073709551616")),
        ] {
            assert_eq!(read(Some(&any), text), Ok(value), "{text}");
        }

        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "[1, 18446744073709551616]",
            // Equal to an integer of the problem that they are not.
            "9007199254740992.0",
            "1e30",
        ] {
            assert_eq!(read(Some(&any), text), Err(Refusal::Unparsable), "{text}");
        }

        // 30!, and one more.
        let factorial = AnswerForm::Schema(json!({"required": ["n"]}));
        let refused = Answers::new(Some(&factorial))
            .expect("a form")
            .read("{\"n\": 265252859812191058636308480000001}")
            .expect_err("33 digits");
        assert_eq!(
            refused.detail,
            "the answer, at n: the integer 265252859812191058636308480000001 is outside -2^63 to \
             2^64-1 and would lose digits; write it as a text"
        );
    }

    #[test]
    fn a_text_is_an_answer_of_its_form() {
        let pattern = AnswerForm::Pattern("[0-9]+".to_owned());
        let schema = AnswerForm::Schema(json!({"type": "array", "items": {"type": "integer"}}));

        assert_eq!(read(None, " forty two "), Ok(json!("forty two")));
        assert_eq!(read(None, "  "), Err(Refusal::Unparsable));
        assert_eq!(read(Some(&pattern), "42"), Ok(json!("42")));

        assert_eq!(
            read(Some(&pattern), "42!"),
            Err(Refusal::Illegal("the answer does not match the pattern"))
        );

        assert_eq!(read(Some(&schema), "[4, 2]"), Ok(json!([4, 2])));
        assert_eq!(read(Some(&schema), "[4, 2"), Err(Refusal::Unparsable));
        assert_eq!(
            read(Some(&schema), "[4, \"2\"]"),
            Err(Refusal::Illegal("the answer is not valid under the schema"))
        );

        for count in [200, 2_000] {
            assert_eq!(read(Some(&schema), &"[".repeat(count)), Err(Refusal::Unparsable));
        }

        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        let any = AnswerForm::Schema(json!(true));
        assert_eq!(read(Some(&any), &deep), Err(Refusal::Illegal("the answer is nested too deep")));
    }
}
