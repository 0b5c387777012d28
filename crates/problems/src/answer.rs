//! Parses the text of an answer or of a step into a value.

use serde_json::Value;

use super::definition::LineForm;
use super::error::Fault;
use super::integers::lossy_number;
use super::limits::JSON_DEPTH_MAX;
use super::pattern::Pattern;
use super::schema::Schema;
use prime_bench::tasks::Refusal;

/// What a text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The answer of a trace.
    Answer,
    /// One step of a trace.
    Step,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Answer => "the answer",
            Self::Step => "the step",
        }
    }

    /// One of two refusals, which are constants.
    fn illegal(self, of_answer: &'static str, of_step: &'static str) -> Refused {
        Refused::illegal(match self {
            Self::Answer => of_answer,
            Self::Step => of_step,
        })
    }
}

/// The required form of an answer or a step.
#[derive(Debug)]
pub enum Form {
    /// Any non-empty text.
    Text,
    /// The whole text matches a pattern.
    Pattern(Pattern),
    /// A pattern with named groups, of a step.
    Groups(Pattern),
    /// The text is JSON that matches a schema.
    Schema(Schema),
}

/// The reader of answers or steps.
#[derive(Debug)]
pub struct Reader {
    what: What,
    form: Form,
}

/// A line that is not an answer, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The kind of refusal, which decides the violation.
    pub refusal: Refusal,
    /// The reason, for people and models.
    pub detail: String,
}

impl Refused {
    /// The text does not have the required form.
    pub fn form(detail: impl Into<String>) -> Self {
        Self { refusal: Refusal::Unparsable, detail: detail.into() }
    }

    /// The text has the form, but is not allowed here.
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

impl Reader {
    /// A reader of answers or steps of the given form; any non-empty text without one.
    ///
    /// # Errors
    /// The pattern or the schema is not valid.
    pub fn new(what: What, form: Option<&LineForm>) -> Result<Self, Fault> {
        let form = match form {
            None => Form::Text,
            Some(LineForm::Pattern(pattern)) => {
                let pattern = Pattern::whole(pattern)?;
                if what == What::Step && pattern.has_groups() {
                    Form::Groups(pattern.with_groups()?)
                } else {
                    Form::Pattern(pattern)
                }
            }
            Some(LineForm::Schema(schema)) => Form::Schema(Schema::new(schema)?),
        };
        Ok(Self { what, form })
    }

    /// Returns whether what is read is the text itself.
    pub fn keeps_text(&self) -> bool {
        matches!(self.form, Form::Text | Form::Pattern(_))
    }

    /// Parses a text, ignoring surrounding whitespace.
    pub fn read(&self, text: &str) -> Result<Value, Refused> {
        let text = text.trim();
        let what = self.what.name();
        if text.is_empty() {
            return Err(Refused::form(format!("{what} is empty")));
        }

        let unmatched = || {
            self.what.illegal(
                "the answer does not match the pattern",
                "the step does not match the pattern",
            )
        };
        match &self.form {
            Form::Text => Ok(Value::String(text.to_owned())),
            Form::Pattern(pattern) if pattern.matches(text) => Ok(Value::String(text.to_owned())),
            Form::Pattern(_) => Err(unmatched()),
            Form::Groups(pattern) => pattern.groups(text).map(Value::Object).ok_or_else(unmatched),
            Form::Schema(schema) => self.under(schema, text),
        }
    }

    fn under(&self, schema: &Schema, text: &str) -> Result<Value, Refused> {
        let what = self.what.name();
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Refused::form(format!("{what} is not JSON: {error}")))?;

        // The value has lost the digits already, and might pass for another one.
        if let Some(lossy) = lossy_number(text) {
            let place = if lossy.path.is_empty() { "" } else { ", at " };
            return Err(Refused::form(format!("{what}{place}{}: {lossy}", lossy.path)));
        }

        // Comes before the schema, whose check recurses.
        if depth_of(&value, JSON_DEPTH_MAX + 1) > JSON_DEPTH_MAX {
            let deep = ("the answer is nested too deep", "the step is nested too deep");
            return Err(self.what.illegal(deep.0, deep.1));
        }

        schema.check(&value).map_err(|detail| {
            let refused = self.what.illegal(
                "the answer is not valid under the schema",
                "the step is not valid under the schema",
            );
            Refused { detail: format!("{}: {detail}", refused.detail), ..refused }
        })?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(form: Option<&LineForm>, text: &str) -> Result<Value, Refusal> {
        Reader::new(What::Answer, form)
            .expect("a form")
            .read(text)
            .map_err(|refused| refused.refusal)
    }

    #[test]
    fn an_integer_that_cannot_be_kept_is_no_answer() {
        let any = LineForm::Schema(json!(true));
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
        let factorial = LineForm::Schema(json!({"required": ["n"]}));
        let refused = Reader::new(What::Answer, Some(&factorial))
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
        let pattern = LineForm::Pattern("[0-9]+".to_owned());
        let schema = LineForm::Schema(json!({"type": "array", "items": {"type": "integer"}}));

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
        let any = LineForm::Schema(json!(true));
        assert_eq!(read(Some(&any), &deep), Err(Refusal::Illegal("the answer is nested too deep")));
    }

    #[test]
    fn a_step_with_named_groups_is_what_they_match() {
        let moved = LineForm::Pattern("move (?<n>[0-9]+)( to (?P<to>[a-c]))?".to_owned());
        let reader = Reader::new(What::Step, Some(&moved)).expect("a form");
        assert_eq!(reader.read("move 12 to b"), Ok(json!({"n": "12", "to": "b"})));
        assert_eq!(reader.read(" move 3 "), Ok(json!({"n": "3"})), "a group that matches nothing");
        assert_eq!(
            reader.read("move b").map_err(|refused| refused.refusal),
            Err(Refusal::Illegal("the step does not match the pattern"))
        );

        // As an answer, and without names, it is the text.
        let answers = Reader::new(What::Answer, Some(&moved)).expect("a form");
        assert_eq!(answers.read("move 3"), Ok(json!("move 3")));
        let plain = LineForm::Pattern("(a|b)+".to_owned());
        assert_eq!(
            Reader::new(What::Step, Some(&plain)).expect("a form").read("ab"),
            Ok(json!("ab"))
        );

        let large = LineForm::Pattern(r"(?<word>\pL+ \pL+)".to_owned());
        let fault = Reader::new(What::Step, Some(&large)).expect_err("large");
        assert!(fault.problem.contains("named groups"), "{fault:?}");
    }
}
