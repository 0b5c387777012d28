//! A client's JSON Schema, bounded. References must be local and are inlined before compilation:
//! nothing is fetched, nothing recurses, and a small schema cannot expand to a huge one.

use std::borrow::Cow;

use jsonschema::{PatternOptions, Validator};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Number, Value};

use super::error::{Fault, ProblemError, quoted};
use super::keywords;
use super::limits::{PATTERN_SIZE_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};
use super::pattern::Pattern;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// Keywords whose values map names to schemas, or to lists of names: the names are not keywords.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies"];

/// Keywords that refer outside the schema, or whose cost is not a sum over its parts.
const REFUSED: [&str; 8] = [
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$id",
    "id",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// −0.0, which is equal to 0 and has another hash.
fn is_negative_zero(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number == 0.0 && number.is_sign_negative())
}

/// Returns whether all objects in a value have their keys in order, and no number is −0.0.
fn is_canonical(value: &Value) -> bool {
    match value {
        Value::Number(number) => !is_negative_zero(number),
        Value::Array(values) => values.iter().all(is_canonical),
        Value::Object(fields) => fields.keys().is_sorted() && fields.values().all(is_canonical),
        _ => true,
    }
}

fn without_negative_zeros(value: &mut Value) {
    match value {
        Value::Number(number) if is_negative_zero(number) => *number = 0.into(),
        Value::Array(values) => values.iter_mut().for_each(without_negative_zeros),
        Value::Object(fields) => fields.values_mut().for_each(without_negative_zeros),
        _ => {}
    }
}

/// The value with the keys of its objects in order, and 0 for −0.0. The validator compares two
/// objects field by field in the order in which their maps have them, and finds equal elements of a
/// long list by their hashes.
fn canonical(value: &Value) -> Cow<'_, Value> {
    if is_canonical(value) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    value.sort_all_objects();
    without_negative_zeros(&mut value);
    Cow::Owned(value)
}

/// Inlines the references of a schema.
struct Expansion<'s> {
    root: &'s Value,
    nodes: usize,
    /// Compiled size of its patterns in KiB.
    patterns_kib: u64,
}

impl Expansion<'_> {
    /// Counts a value at this depth.
    fn enter(&mut self, depth: usize) -> Result<(), Fault> {
        self.nodes += 1;
        if self.nodes > SCHEMA_NODES_MAX {
            return Err(Fault::new(
                format!(
                    "the schema has more than {SCHEMA_NODES_MAX} values when its references are written out"
                ),
                "write a smaller one",
            ));
        }

        if depth > SCHEMA_DEPTH_MAX {
            return Err(Fault::new(
                format!(
                    "the schema is nested more than {SCHEMA_DEPTH_MAX} deep when its references are written out"
                ),
                "write a flatter one, without definitions that refer to themselves",
            ));
        }
        Ok(())
    }

    /// Counts a pattern of the schema; all of them may be tried on the same text.
    fn pattern(&mut self, pattern: &str) -> Result<(), Fault> {
        self.patterns_kib += Pattern::anywhere(pattern)?.work_per_byte();
        if self.patterns_kib > (PATTERN_SIZE_MAX >> 10) as u64 {
            return Err(Fault::new(
                "the patterns of the schema are too large together",
                "write fewer, simpler ones",
            ));
        }
        Ok(())
    }

    fn data(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        self.enter(depth)?;
        match value {
            Value::Array(values) => values.iter().try_for_each(|value| self.data(value, depth + 1)),
            Value::Object(fields) => {
                fields.values().try_for_each(|value| self.data(value, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn target(&self, reference: &Value) -> Result<Value, Fault> {
        let text = reference.as_str().unwrap_or_default();
        // A reference is a URI, whose fragment may be percent-encoded (RFC 6901, section 6).
        let pointer = text
            .strip_prefix('#')
            .and_then(|fragment| percent_decode_str(fragment).decode_utf8().ok())
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let target = pointer.and_then(|pointer| self.root.pointer(&pointer));
        target.cloned().ok_or_else(|| {
            Fault::new(
                format!("the reference {} leads nowhere in the schema", quoted(reference)),
                "refer to a place in the same schema, such as `#/$defs/name`; nothing is fetched",
            )
        })
    }

    fn named(&mut self, schemas: &Value, depth: usize) -> Result<Value, Fault> {
        self.enter(depth)?;
        let Value::Object(fields) = schemas else { return Ok(schemas.clone()) };
        let written =
            fields.iter().map(|(name, schema)| Ok((name.clone(), self.schema(schema, depth + 1)?)));
        Ok(Value::Object(written.collect::<Result<_, Fault>>()?))
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, Fault> {
        self.enter(depth)?;
        let fields = match schema {
            Value::Array(schemas) => {
                let written = schemas.iter().map(|schema| self.schema(schema, depth + 1));
                return Ok(Value::Array(written.collect::<Result<_, Fault>>()?));
            }
            Value::Object(fields) => fields,
            _ => return Ok(schema.clone()),
        };

        let mut written = Map::new();
        let mut referred = None;

        for (keyword, value) in fields {
            if REFUSED.contains(&keyword.as_str()) {
                return Err(Fault::new(
                    format!("the keyword `{keyword}` is not supported"),
                    "leave it out; `additionalProperties` and `$ref` to a place in the same schema are supported",
                ));
            }

            // All patterns share one bound, wherever they stand.
            match (keyword.as_str(), value) {
                ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                ("patternProperties", Value::Object(named)) => {
                    named.keys().try_for_each(|pattern| self.pattern(pattern))?;
                }
                _ => {}
            }

            match keyword.as_str() {
                // Two levels deeper: the target becomes an element of `allOf`.
                "$ref" => referred = Some(self.schema(&self.target(value)?, depth + 2)?),
                // Left out: all references to them are inlined.
                "$defs" | "definitions" => {}
                data if DATA.contains(&data) => {
                    self.data(value, depth + 1)?;
                    written.insert(keyword.clone(), value.clone());
                }
                named if NAMED.contains(&named) => {
                    written.insert(keyword.clone(), self.named(value, depth + 1)?);
                }
                _ => {
                    written.insert(keyword.clone(), self.schema(value, depth + 1)?);
                }
            }
        }

        if let Some(target) = referred {
            // Keywords next to a reference apply as well.
            match written.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(all) => all.push(target),
                _ => return Err(Fault::new("`allOf` is not a list", "write a list of schemas")),
            }
        }

        Ok(Value::Object(written))
    }
}

impl Schema {
    /// Compiles a schema; `path` is its place in a request, for errors.
    ///
    /// # Errors
    /// It is not a schema, exceeds a limit or reaches outside.
    pub fn read(path: &str, schema: &Value) -> Result<Self, ProblemError> {
        Self::new(schema).map_err(|fault| fault.at(path))
    }

    pub(super) fn new(schema: &Value) -> Result<Self, Fault> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err(Fault::new(
                "not a JSON Schema",
                "write an object, such as {\"type\": \"integer\"}",
            ));
        }

        Fault::unless_short("the schema", schema.to_string().len(), SCHEMA_BYTES_MAX)?;
        let mut written =
            Expansion { root: schema, nodes: 0, patterns_kib: 0 }.schema(schema, 0)?;
        // For `enum`: see `canonical`.
        written.sort_all_objects();

        keywords::exact(jsonschema::options())
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE_MAX))
            .build(&written)
            .map(Self)
            .map_err(|error| {
                let place = error.instance_path.to_string();
                let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
                Fault::new(
                    format!("not a JSON Schema{place}: {}", quoted(&error)),
                    "correct it; patterns are those of the Rust crate `regex`, and of limited size",
                )
            })
    }

    /// Checks a value against the schema.
    ///
    /// # Errors
    /// The part of the value that is invalid.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let value = canonical(value);

        // The common case, in which no error has to be made.
        if self.0.is_valid(&value) {
            return Ok(());
        }
        Err(self.0.iter_errors(&value).next().map_or_else(String::new, |error| {
            let place = error.instance_path.to_string();
            let place = if place.is_empty() { String::new() } else { format!("at {place}: ") };
            format!("{place}{}", quoted(&error))
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_checked_and_errors_say_where() {
        let schema = Schema::new(&json!({
            "type": "object",
            "required": ["x"],
            "additionalProperties": false,
            "properties": {
                "x": {"type": "integer", "minimum": 2},
                "$ref": {"const": {"$ref": "no"}},
            },
        }))
        .expect("valid");
        assert_eq!(schema.check(&json!({"x": 2})), Ok(()));

        let error = schema.check(&json!({"x": 1})).expect_err("too small");
        assert!(error.contains("at /x: ") && error.contains("minimum"), "{error}");
        assert!(schema.check(&json!({"y": 1})).is_err());
    }

    #[test]
    fn local_references_apply_with_their_siblings() {
        let schema = Schema::new(&json!({
            "$defs": {
                "small": {"type": "integer", "maximum": 9},
                "list": {"items": {"$ref": "#/$defs/small"}},
            },
            "allOf": [{"type": "array"}],
            "$ref": "#/$defs/list",
            "maxItems": 2,
        }))
        .expect("valid");

        assert_eq!(schema.check(&json!([1, 9])), Ok(()));
        for wrong in [json!([10]), json!([1, 2, 3]), json!(1), json!(["1"])] {
            assert!(schema.check(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_fragment_of_a_reference_is_percent_decoded() {
        let schema = |reference: &str| {
            Schema::new(&json!({
                "$defs": {"n": {"type": "integer"}, "a/b %": {"type": "integer"}},
                "$ref": reference,
            }))
        };

        for reference in ["#/%24defs/n", "#/$defs/n", "#%2F%24defs%2Fn", "#/$defs/a~1b%20%25"] {
            let schema = schema(reference).expect(reference);
            assert_eq!(schema.check(&json!(1)), Ok(()), "{reference}");
            assert!(schema.check(&json!("1")).is_err(), "{reference}");
        }
        for reference in ["#/$defs/a%2Fb %", "#/%FFdefs/n", "%23/$defs/n"] {
            assert!(schema(reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn the_order_of_keys_says_nothing() {
        let (one, other) = (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}));

        for (schema, value) in [
            (json!({"const": one}), other.clone()),
            (json!({"enum": [0, one]}), other.clone()),
            (json!({"contains": {"const": one}}), json!([0, other])),
            (json!({"properties": {"x": {"const": {"y": [one]}}}}), json!({"x": {"y": [other]}})),
            (json!({"const": other}), one.clone()),
        ] {
            let read = Schema::new(&schema).expect("valid");
            assert_eq!(read.check(&value), Ok(()), "{schema} {value}");
        }

        let unique = Schema::new(&json!({"uniqueItems": true})).expect("valid");
        assert!(unique.check(&json!([one, other])).is_err(), "twice the same");
        // A long list is compared in another way.
        let mut many: Vec<Value> = (0..18).map(|n| json!({"b": n, "a": 1})).collect();
        assert_eq!(unique.check(&json!(many)), Ok(()));
        many.extend([json!({"c": [other]}), json!({"c": [one]})]);
        assert!(unique.check(&json!(many)).is_err(), "the last two are the same");
        let zeros: Vec<Value> = (0..18).map(Value::from).chain([json!({"a": [-0.0]})]).collect();
        assert_eq!(unique.check(&json!(zeros)), Ok(()));
        let zeros: Vec<Value> = (0..18).map(Value::from).chain([json!(-0.0)]).collect();
        assert!(unique.check(&json!(zeros)).is_err(), "0 comes twice");
    }

    #[test]
    fn names_of_properties_are_not_keywords() {
        for keyword in ["dependentRequired", "dependencies"] {
            for name in ["definitions", "$defs", "const", "enum", "$ref", "$id", "pattern"] {
                let schema = Schema::new(&json!({keyword: {name: ["b"]}})).expect(name);
                assert!(schema.check(&json!({name: 1})).is_err(), "{keyword} {name}");
                assert_eq!(schema.check(&json!({name: 1, "b": 1})), Ok(()), "{keyword} {name}");
                assert_eq!(schema.check(&json!({"a": 1})), Ok(()), "{keyword} {name}");
            }
        }

        for keyword in ["dependentSchemas", "dependencies"] {
            let needs = json!({"$ref": "#/$defs/needs"});
            let schema = Schema::new(&json!({
                "$defs": {"needs": {"required": ["b"]}},
                keyword: {"definitions": needs},
            }))
            .expect("valid");
            assert!(schema.check(&json!({"definitions": 1})).is_err(), "{keyword}");
            assert_eq!(schema.check(&json!({"definitions": 1, "b": 1})), Ok(()), "{keyword}");
        }
    }

    #[test]
    fn a_reason_is_short_however_large_the_value() {
        let schema = Schema::new(&json!({"type": "integer"})).expect("valid");

        let error = schema.check(&json!("x".repeat(100_000))).expect_err("a string");
        assert!(error.len() < 400, "{}", error.len());
    }

    #[test]
    fn schemas_that_reach_out_recurse_or_explode_are_refused() {
        let bomb = |names: &[&str]| {
            let definitions = names.windows(2).map(|pair| {
                let reference = json!({"$ref": format!("#/$defs/{}", pair[1])});
                (pair[0].to_owned(), json!({"allOf": [reference, reference, reference, reference]}))
            });
            let mut definitions: Map<_, _> = definitions.collect();
            definitions
                .insert((*names.last().expect("names")).to_owned(), json!({"type": "integer"}));
            json!({"$ref": "#/$defs/a", "$defs": definitions})
        };

        let mut deep = json!({"type": "integer"});
        for _ in 0..40 {
            deep = json!({"items": deep});
        }

        for (schema, part) in [
            (json!({"$ref": "#"}), "nested more than"),
            (
                json!({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}),
                "nested more than",
            ),
            (json!({"$ref": "https://example.com/schema.json"}), "leads nowhere"),
            (json!({"$ref": "file:///etc/passwd"}), "leads nowhere"),
            (json!({"$ref": "#anchor"}), "leads nowhere"),
            (json!({"$ref": 3}), "leads nowhere"),
            (bomb(&["a", "b", "c", "d", "e", "f", "g", "h"]), "more than"),
            (deep, "nested more than"),
            (
                json!({"allOf": 1, "$ref": "#/$defs/a", "$defs": {"a": true}}),
                "`allOf` is not a list",
            ),
            (json!({"$id": "https://example.com/x"}), "`$id` is not supported"),
            (json!({"unevaluatedItems": false}), "`unevaluatedItems` is not supported"),
            (json!({"$schema": "https://example.com/other"}), "not a JSON Schema"),
            (json!({"type": "number?"}), "not a JSON Schema"),
            (json!({"pattern": "("}), "not a regular expression"),
            (json!({"pattern": r"\pL{900}"}), "too large when it is compiled"),
            (json!({"patternProperties": {"x".repeat(2_000): true}}), "2000 bytes"),
            (json!({"allOf": vec![json!({"pattern": "a{200}"}); 100]}), "too large together"),
            (json!({"enum": vec![1; 5_000]}), "more than 4000 values"),
            (json!([1]), "not a JSON Schema"),
        ] {
            let fault = Schema::new(&schema).expect_err(&schema.to_string());
            assert!(fault.problem.contains(part), "{schema}: {fault:?}");
            assert!(!fault.remedy.is_empty());
        }
    }

    #[test]
    fn a_pattern_takes_time_in_proportion_to_the_text() {
        let schema = Schema::new(&json!({"pattern": "^(a+)+$"})).expect("valid");
        assert!(schema.check(&json!(format!("{}!", "a".repeat(4_000)))).is_err());
    }
}
