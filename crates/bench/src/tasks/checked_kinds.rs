//! The kinds of constraints that a verifier checks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::spec::{Kind, Kinds, Spec};

/// The edition of the constraints that this program evaluates. It is raised with every change after
/// which a constraint refuses what it allowed before, or a sound set grows; a record whose steps
/// were judged under another edition no longer shows what was evaluated.
pub const EDITION: u32 = 1;

/// Kinds by name, or for each task the smallest set that is sound there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum CheckedKinds {
    /// The task's own ([`Spec::sound`]).
    Sound,
    /// The same kinds for every task.
    These(Kinds),
}

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "\"sound\", or a list of kinds: format, invariant, transition, terminal"
)]
enum Form {
    Word(Word),
    List(Vec<Kind>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Sound,
}

impl TryFrom<Form> for CheckedKinds {
    type Error = &'static str;

    fn try_from(form: Form) -> Result<Self, Self::Error> {
        match form {
            Form::Word(Word::Sound) => Ok(Self::Sound),
            Form::List(kinds) if kinds.is_empty() => {
                Err("no kinds at all: write \"sound\", or name at least one of format, invariant, \
                     transition, terminal (implementation `none` checks nothing)")
            }
            Form::List(kinds) => Ok(Self::These(kinds.into_iter().collect())),
        }
    }
}

impl From<CheckedKinds> for Form {
    fn from(kinds: CheckedKinds) -> Self {
        match kinds {
            CheckedKinds::Sound => Self::Word(Word::Sound),
            CheckedKinds::These(kinds) => Self::List(kinds.iter().collect()),
        }
    }
}

impl CheckedKinds {
    /// The kinds to look at in this task.
    pub fn of(self, task: &Spec) -> Kinds {
        match self {
            Self::Sound => task.sound,
            Self::These(kinds) => kinds,
        }
    }
}

impl fmt::Display for CheckedKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => f.write_str("sound"),
            Self::These(kinds) => {
                let names: Vec<_> = kinds.iter().map(Kind::name).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

impl From<Kinds> for CheckedKinds {
    fn from(kinds: Kinds) -> Self {
        Self::These(kinds)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CheckedKinds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CheckedKinds".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "array"],
            "format": "sound",
            "items": { "enum": Kind::ALL.map(Kind::name) },
            "minItems": 1,
            "maxItems": Kind::ALL.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_a_word_or_a_list() {
        for (text, kinds) in [
            ("\"sound\"", CheckedKinds::Sound),
            (
                "[\"format\",\"terminal\"]",
                [Kind::Format, Kind::Terminal].into_iter().collect::<Kinds>().into(),
            ),
        ] {
            let read: CheckedKinds = serde_json::from_str(text).unwrap();
            assert_eq!(read, kinds);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_what_is_allowed() {
        for text in ["\"all\"", "[]", "[\"everything\"]", "3"] {
            let error = serde_json::from_str::<CheckedKinds>(text).unwrap_err().to_string();
            assert!(error.contains("sound") && error.contains("invariant"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_sound_depends_on_the_task() {
        let spec = crate::tasks::find("bubble-sort").unwrap().spec();
        assert_eq!(CheckedKinds::Sound.of(spec), spec.sound);
        assert_eq!(CheckedKinds::These(Kinds::ALL).of(spec), Kinds::ALL);
    }
}
