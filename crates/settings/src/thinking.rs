//! How much a model may think before its answer.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Most tokens of a budget.
const TOKENS_MAX: u32 = 1_000_000;

/// A value of `thinking`: `"model"`, `"off"`, or a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum Thinking {
    /// As the model and its server do by themselves.
    #[default]
    AsModel,
    /// Not at all, as far as the model can be told.
    Off,
    /// At most this many tokens, at least 1, in addition to those of the answer.
    AtMost(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "\"model\", \"off\", or a number of tokens")]
enum Form {
    Tokens(u32),
    Name(Cow<'static, str>),
}

impl TryFrom<Form> for Thinking {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Tokens(tokens @ 1..=TOKENS_MAX) => Ok(Self::AtMost(tokens)),
            Form::Name(name) if name == "model" => Ok(Self::AsModel),
            Form::Name(name) if name == "off" => Ok(Self::Off),
            Form::Tokens(_) | Form::Name(_) => {
                Err(format!("not \"model\", \"off\", or a number of tokens from 1 to {TOKENS_MAX}"))
            }
        }
    }
}

impl From<Thinking> for Form {
    fn from(thinking: Thinking) -> Self {
        match thinking {
            Thinking::AsModel => Self::Name("model".into()),
            Thinking::Off => Self::Name("off".into()),
            Thinking::AtMost(tokens) => Self::Tokens(tokens),
        }
    }
}

impl JsonSchema for Thinking {
    fn schema_name() -> Cow<'static, str> {
        "Thinking".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "format": "thinking",
            "minimum": 1,
            "maximum": TOKENS_MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_name_or_a_number_of_tokens() {
        for (json, thinking) in [
            ("\"model\"", Thinking::AsModel),
            ("\"off\"", Thinking::Off),
            ("1", Thinking::AtMost(1)),
            ("1000000", Thinking::AtMost(1_000_000)),
        ] {
            assert_eq!(serde_json::from_str::<Thinking>(json).unwrap(), thinking);
            assert_eq!(serde_json::to_string(&thinking).unwrap(), json);
        }
        for json in ["0", "1000001", "\"on\"", "true", "-1", "1.5"] {
            assert!(serde_json::from_str::<Thinking>(json).is_err(), "{json}");
        }
    }
}
