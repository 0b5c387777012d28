//! Validates a tree of values against the schema: keys, types, ranges, choices. Values carry their
//! origin, so an error names where the value was set. The `config` crate alone would round 8.5 to
//! an integer and read `true` as 1.

use std::net::SocketAddr;
use std::str::FromStr;

use config::{Value, ValueKind};
use serde_json::{Number, Value as Json};

use super::api_key::{KeyHash, is_name};
use super::error::SettingsError;
use super::schema_value::{child, choices, is_list_of_tables, is_map, keys, kind_of};
use prime_bench::spelling::nearest;
use prime_engine::Device;
use prime_protocol::Role;

/// Returns the first violation of the schema. Agent names are not checked.
pub(super) fn check(value: &Value, root: &Json) -> Result<(), SettingsError> {
    Checker { root, agents: &|_| None }.value(value, root, "")
}

/// Like [`check`], but also checks agent names.
pub(super) fn check_agents(
    value: &Value,
    root: &Json,
    agents: &dyn Fn(Role) -> Vec<String>,
) -> Result<(), SettingsError> {
    Checker { root, agents: &|role| Some(agents(role)) }.value(value, root, "")
}

/// The role whose agent the value names, if it is an agent's name.
fn role_of(schema: &Json) -> Option<Role> {
    let format = schema["format"].as_str()?;
    Role::ALL.into_iter().find(|role| role.name() == format)
}

struct Checker<'a> {
    root: &'a Json,
    agents: &'a dyn Fn(Role) -> Option<Vec<String>>,
}

impl Checker<'_> {
    fn value(&self, value: &Value, schema: &Json, key: &str) -> Result<(), SettingsError> {
        if let Some(known) = choices(schema) {
            return choice(value, key, schema, known);
        }

        if let Some(known) = role_of(schema).and_then(self.agents) {
            return choice(value, key, schema, known);
        }

        match schema["format"].as_str() {
            Some("thinking") => return named_or_count(value, key, schema, &["model", "off"]),
            Some("gpu-layers") => return named_or_count(value, key, schema, &["all", "auto"]),
            Some("cpu-experts") if !matches!(value.kind, ValueKind::Boolean(_)) => {
                return named_or_count(value, key, schema, &[]);
            }
            _ => {}
        }

        // Where one value or a list of them may stand, `kind_of` names only the first of the types.
        let kind = match &value.kind {
            ValueKind::Array(_) if is_one_or_more(schema) => Some("array"),
            _ => kind_of(schema),
        };

        let fits = match (kind, &value.kind) {
            (Some("object"), ValueKind::Table(table)) => {
                // Sorted, so that the first error does not depend on hashing.
                let mut entries: Vec<_> = table.iter().collect();
                entries.sort_by_key(|(name, _)| *name);
                return entries
                    .into_iter()
                    .try_for_each(|(name, below)| self.entry(name, below, schema, key));
            }
            (Some("array"), ValueKind::Array(items)) => {
                let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
                let count = items.len() as u64;
                if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most)
                {
                    return Err(out_of_range(value, key, schema));
                }

                return items.iter().try_for_each(|item| {
                    self.value(item, &schema["items"], key)?;
                    complete(item, &schema["items"], key)
                });
            }
            (Some("string"), ValueKind::String(text)) => match schema["format"].as_str() {
                Some("device") => Device::from_str(text).is_ok(),
                Some("name" | "executor" | "verifier" | "coordinator") => is_name(text),
                Some("words" | "secret") => true,
                Some("sound") => text == "sound",
                Some("sha256") => KeyHash::from_str(text).is_ok(),
                Some("socket-address") => SocketAddr::from_str(text).is_ok(),
                Some("url") => is_url(text),
                Some("json-object") => serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok(),
                Some("postgres-url") => {
                    text.is_empty()
                        || ["postgres://", "postgresql://"]
                            .iter()
                            .any(|scheme| text.starts_with(scheme))
                }
                Some("http-address") => {
                    text.is_empty() || text.len() > 7 && text.starts_with("http://")
                }
                _ => !text.is_empty(),
            },
            (Some("boolean"), ValueKind::Boolean(_)) => true,
            // Numbers are compared as 128-bit integers, so that the bounds of `u64` hold exactly.
            (Some("integer"), kind) => {
                let Some(number) = integer(kind) else {
                    return Err(wrong_type(value, key, schema));
                };
                let bound = |name: &str| schema[name].as_number().and_then(Number::as_i128);
                bound("minimum").is_none_or(|least| number >= least)
                    && bound("maximum").is_none_or(|most| number <= most)
            }
            (Some("number"), kind) => {
                let Some(number) = float(kind) else { return Err(wrong_type(value, key, schema)) };
                number.is_finite()
                    && schema["minimum"].as_f64().is_none_or(|least| number >= least)
                    && schema["exclusiveMinimum"].as_f64().is_none_or(|least| number > least)
                    && schema["maximum"].as_f64().is_none_or(|most| number <= most)
            }
            _ => return Err(wrong_type(value, key, schema)),
        };

        if fits { Ok(()) } else { Err(out_of_range(value, key, schema)) }
    }

    fn entry(
        &self,
        name: &str,
        value: &Value,
        schema: &Json,
        at: &str,
    ) -> Result<(), SettingsError> {
        let key = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        if is_map(schema) && !is_map_key(name) {
            return Err(SettingsError::OutOfRange {
                origin: origin(value),
                key: at.to_owned(),
                found: format!("given an entry called \"{name}\""),
                expected: "a table whose names have only lower-case letters, digits, `-` and `_`"
                    .to_owned(),
            });
        }

        if let Some(below) = child(schema, name) {
            return self.value(value, below, &key);
        }

        // In `engines.big.modle`, `big` is the name to put into the suggestions.
        let (section, below) = key.split_once('.').unwrap_or((&key, ""));
        let is_named = child(self.root, section).is_some_and(is_map);
        let chosen = below.split('.').next().filter(|_| is_named).unwrap_or("<name>");

        // The whole list of keys helps only when no known key is similar.
        let all = keys(self.root, chosen);
        let near = nearest(
            &key,
            all.iter().map(String::as_str).filter(|candidate| !candidate.contains('<')),
        );
        let known = match (near, schema["properties"].as_object()) {
            (None, Some(table)) => table.keys().cloned().collect(),
            _ => Vec::new(),
        };

        Err(SettingsError::UnknownKey {
            origin: origin(value),
            nearest: near.map(Into::into),
            key,
            known,
        })
    }
}

fn choice(
    value: &Value,
    key: &str,
    schema: &Json,
    known: Vec<String>,
) -> Result<(), SettingsError> {
    match &value.kind {
        ValueKind::String(text) if known.contains(text) => Ok(()),
        ValueKind::String(text) => {
            let near = nearest(text, known.iter().map(String::as_str)).map(Into::into);
            let (key, found) = (key.to_owned(), text.clone());
            Err(SettingsError::UnknownName {
                origin: origin(value),
                key,
                found,
                nearest: near,
                known,
            })
        }
        _ => Err(wrong_type(value, key, schema)),
    }
}

/// One of a few words, or a number.
fn named_or_count(
    value: &Value,
    key: &str,
    schema: &Json,
    names: &[&str],
) -> Result<(), SettingsError> {
    let fits = match (&value.kind, integer(&value.kind)) {
        (ValueKind::String(text), _) => names.contains(&text.as_str()),
        (_, Some(number)) => {
            let bound = |name: &str| schema[name].as_number().and_then(Number::as_i128);
            bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most)
        }
        _ => return Err(wrong_type(value, key, schema)),
    };
    if fits { Ok(()) } else { Err(out_of_range(value, key, schema)) }
}

/// Where a value was set, for messages.
pub(super) fn origin(value: &Value) -> String {
    value.origin().unwrap_or("the settings").to_owned()
}

/// Returns whether this is a valid name of an engine, a pool or a preset. An environment variable
/// must be able to express it, so it has no `__`.
fn is_map_key(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    !name.is_empty() && !name.contains("__") && name.bytes().all(allowed)
}

/// Returns whether a text looks like a server's URL.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// A table in a list is not merged from layers, so it must be complete.
fn complete(item: &Value, schema: &Json, key: &str) -> Result<(), SettingsError> {
    let ValueKind::Table(table) = &item.kind else { return Ok(()) };
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let Some(name) = required.find(|name| !table.contains_key(*name)) else { return Ok(()) };

    let expected = expected(&schema["properties"][name]);
    Err(SettingsError::Missing {
        key: format!("{key}.{name}"),
        origin: origin(item),
        example: format!("{name} = …` with {expected}, in every `[[{key}]]"),
    })
}

/// Returns whether a value may be a string or a list of strings.
fn is_one_or_more(schema: &Json) -> bool {
    schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
}

fn integer(kind: &ValueKind) -> Option<i128> {
    match kind {
        ValueKind::I64(number) => Some((*number).into()),
        ValueKind::U64(number) => Some((*number).into()),
        ValueKind::I128(number) => Some(*number),
        ValueKind::U128(number) => i128::try_from(*number).ok(),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "large integers are out of range anyway")]
fn float(kind: &ValueKind) -> Option<f64> {
    match kind {
        ValueKind::Float(number) => Some(*number),
        // TOML's `1` is as good as `1.0` for a number.
        kind => integer(kind).map(|number| number as f64),
    }
}

fn wrong_type(value: &Value, key: &str, schema: &Json) -> SettingsError {
    let (found, expected) = (found(value, schema), expected(schema));
    SettingsError::WrongType { origin: origin(value), key: shown(key), found, expected }
}

fn out_of_range(value: &Value, key: &str, schema: &Json) -> SettingsError {
    let (found, expected) = (found(value, schema), expected(schema));
    SettingsError::OutOfRange { origin: origin(value), key: shown(key), found, expected }
}

fn shown(key: &str) -> String {
    if key.is_empty() { "the configuration".to_owned() } else { key.to_owned() }
}

fn found(value: &Value, schema: &Json) -> String {
    match &value.kind {
        _ if schema["format"] == "secret" => "hidden".to_owned(),
        ValueKind::Nil => "empty".to_owned(),
        ValueKind::String(text) => format!("the text {text:?}"),
        ValueKind::Boolean(flag) => format!("the boolean {flag}"),
        ValueKind::Float(number) => format!("the float {number:?}"),
        ValueKind::Table(_) => "a table".to_owned(),
        ValueKind::Array(items) if items.is_empty() => "an empty list".to_owned(),
        ValueKind::Array(items) => format!("a list of {}", items.len()),
        number => number.to_string(),
    }
}

/// What a schema allows, in words; also the column "values" of the reference page.
pub(super) fn expected(schema: &Json) -> String {
    if let Some(known) = choices(schema) {
        return format!("one of {}", quoted(&known));
    }
    match kind_of(schema) {
        _ if schema["format"] == "thinking" => format!(
            "\"model\", \"off\", or a number of tokens from {} to {}",
            schema["minimum"], schema["maximum"]
        ),
        _ if schema["format"] == "gpu-layers" => {
            format!("\"all\", \"auto\", or a number of layers up to {}", schema["maximum"])
        }
        _ if schema["format"] == "cpu-experts" => {
            format!("true, false, or a number of layers up to {}", schema["maximum"])
        }
        Some("integer") => {
            format!("an integer from {} to {}", schema["minimum"], schema["maximum"])
        }
        Some("number") if schema["exclusiveMinimum"].is_number() => {
            format!("a number above {} and up to {}", schema["exclusiveMinimum"], schema["maximum"])
        }
        Some("number") => format!("a number from {} to {}", schema["minimum"], schema["maximum"]),
        Some("array") if is_list_of_tables(schema) => "a list of tables (`[[section]]`)".to_owned(),
        Some("array") => match choices(&schema["items"]) {
            Some(known) => format!("a list of one or more of {}", quoted(&known)),
            None => format!("a list, each {}", expected(&schema["items"])),
        },
        Some("boolean") => "true or false".to_owned(),
        Some("object") => "a table (`[section]` with keys below)".to_owned(),
        _ => match schema["format"].as_str() {
            Some("device") => {
                let one = "`cpu`, `CUDA0`, `CUDA1`, …, a full GPU UUID as `nvidia-smi -L` prints \
                           it, a PCI id such as `pci:0000:65:00.0`, or `MTL0`, `ROCm0`, `Vulkan0`";
                if is_one_or_more(schema) {
                    format!("{one}; or a list of GPUs")
                } else {
                    one.to_owned()
                }
            }
            Some(role @ ("executor" | "verifier" | "coordinator")) => {
                format!("the name of a {role}: an implementation or a definition")
                    .replace("a executor", "an executor")
            }
            Some("words") => "a text".to_owned(),
            Some("secret") => "a text `whsec_…`".to_owned(),
            Some("sound") => {
                let known = choices(&schema["items"]).unwrap_or_default();
                format!("\"sound\", or a list of one or more of {}", quoted(&known))
            }
            Some("name") => "a text of up to 64 lower-case letters, digits, `-` and `_`".to_owned(),
            Some("sha256") => {
                "a SHA-256, 64 hexadecimal digits, as `prime-agents key new NAME` prints it"
                    .to_owned()
            }
            Some("url") => "a URL such as \"http://127.0.0.1:8080/v1\"".to_owned(),
            Some("json-object") => "a JSON object, such as \"{}\"".to_owned(),
            Some("postgres-url") => {
                "empty, or a URL such as \"postgres://prime@127.0.0.1/prime\"".to_owned()
            }
            Some("http-address") => "empty, or a URL such as \"http://127.0.0.1:4318\"".to_owned(),
            Some("socket-address") => {
                "an IP address and port, such as \"127.0.0.1:7433\"".to_owned()
            }
            _ => "a non-empty string".to_owned(),
        },
    }
}

fn quoted(known: &[String]) -> String {
    known.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
