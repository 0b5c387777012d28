//! The engines of an agent: one, or several whose models know different tasks.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Names of entries of `engines`. Written as a string, or as a list of strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
pub struct EngineNames(Vec<String>);

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "the name of an engine, or a list of names")]
enum Form {
    One(String),
    Several(Vec<String>),
}

impl From<Form> for EngineNames {
    fn from(form: Form) -> Self {
        match form {
            Form::One(name) => Self(vec![name]),
            Form::Several(names) => Self(names),
        }
    }
}

impl From<EngineNames> for Form {
    fn from(EngineNames(mut names): EngineNames) -> Self {
        match names.pop() {
            Some(name) if names.is_empty() => Self::One(name),
            last => {
                names.extend(last);
                Self::Several(names)
            }
        }
    }
}

impl From<&str> for EngineNames {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl EngineNames {
    /// All names in order; empty if no engine is named.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

/// The model to ask about a task: the first that has learnt it, else the first for which that is
/// not known, else the first.
pub fn first_that_knows<T>(models: &[T], has_learnt: impl Fn(&T) -> Option<bool>) -> Option<&T> {
    let first = |wanted| models.iter().find(|model| has_learnt(model) == wanted);
    first(Some(true)).or_else(|| first(None)).or(models.first())
}

impl fmt::Display for EngineNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl JsonSchema for EngineNames {
    fn schema_name() -> Cow<'static, str> {
        "EngineNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"],
            "items": { "type": "string" },
            "minItems": 1,
            "uniqueItems": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_a_text_and_several_are_a_list() {
        for (json, shown) in
            [("\"tiny\"", "tiny"), ("[\"tiny\",\"automata\"]", "tiny, automata"), ("[]", "")]
        {
            let names: EngineNames = serde_json::from_str(json).unwrap();

            assert_eq!(
                (names.to_string().as_str(), serde_json::to_string(&names).unwrap().as_str()),
                (shown, json)
            );
        }
        assert_eq!(
            serde_json::from_str::<EngineNames>("[\"tiny\"]").unwrap(),
            EngineNames::from("tiny")
        );

        let error = serde_json::from_str::<EngineNames>("3").unwrap_err().to_string();
        assert!(error.contains("the name of an engine, or a list of names"), "{error}");
    }
}
