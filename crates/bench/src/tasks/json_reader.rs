//! Reads a value of JSON into a type, and names the field that does not fit.
//!
//! All tasks' instances and states are read by this one deserialiser, in one layer, and its parts
//! are never inlined into what serde generates for each of their types: a layer around
//! `serde_json`'s that tracks the path took a third of the crate's compilation.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

use crate::output::value::integer;

/// Reads a value. An error names the field, from `what` on.
///
/// # Errors
/// The first field that does not fit, and why: `what field `a.b[3]`: reason`.
pub fn read<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, String> {
    let path = Path::default();
    T::deserialize(Reader { value, path: &path }).map_err(|error| path.describe(what, &error))
}

/// serde's reason without the names of Rust's types.
fn in_words(reason: &str) -> String {
    let Some((start, expected)) = reason.rsplit_once("expected ") else { return reason.to_owned() };
    let bits = |prefix: char| {
        let bits = expected.strip_prefix(prefix)?;
        ["8", "16", "32", "64", "128", "size"].contains(&bits).then_some(bits)
    };
    let expected = match (bits('u'), bits('i'), bits('f')) {
        (Some("8"), ..) => "an integer from 0 to 255",
        (Some("16"), ..) => "an integer from 0 to 65535",
        (Some(_), ..) => "an integer of 0 or more",
        (_, Some(_), _) => "an integer",
        (.., Some(_)) => "a number",
        _ => expected,
    };
    format!("{start}expected {expected}")
}

enum Segment<'de> {
    Field(&'de str),
    Index(usize),
}

/// The way from the whole value to the part that is being read. After an error it stays where the
/// error is.
#[derive(Default)]
struct Path<'de>(RefCell<Vec<Segment<'de>>>);

impl<'de> Path<'de> {
    fn enter(&self, segment: Segment<'de>) {
        self.0.borrow_mut().push(segment);
    }

    fn leave(&self) {
        self.0.borrow_mut().pop();
    }

    fn describe(&self, what: &str, error: &Error) -> String {
        let mut path = String::new();
        for segment in self.0.borrow().iter() {
            let dot = if path.is_empty() { "" } else { "." };
            let written = match segment {
                Segment::Field(name) => write!(path, "{dot}{name}"),
                Segment::Index(index) => write!(path, "[{index}]"),
            };
            written.expect("invariant: writing to memory succeeds");
        }
        let reason = in_words(&error.to_string());
        if path.is_empty() {
            format!("{what}: {reason}")
        } else {
            format!("{what} field `{path}`: {reason}")
        }
    }
}

#[derive(Clone, Copy)]
struct Reader<'p, 'de> {
    value: &'de Value,
    path: &'p Path<'de>,
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => Unexpected::Unsigned(number),
            (_, Some(number), _) => Unexpected::Signed(number),
            (_, _, Some(number)) => Unexpected::Float(number),
            _ => Unexpected::Other("number"),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

impl<'de> Reader<'_, 'de> {
    #[inline(never)]
    fn read_object<V: Visitor<'de>>(
        self,
        fields: &'de Map<String, Value>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut rest = Fields { rest: fields.iter(), value: None, path: self.path };
        let read = visitor.visit_map(&mut rest)?;

        if rest.rest.len() == 0 {
            Ok(read)
        } else {
            Err(Error::invalid_length(fields.len(), &"fewer elements in map"))
        }
    }

    #[inline(never)]
    fn read_array<V: Visitor<'de>>(
        self,
        elements: &'de [Value],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut rest = Elements { all: elements, next: 0, path: self.path };
        let read = visitor.visit_seq(&mut rest)?;

        // The visitor of a tuple stops after its own number of elements.
        if rest.next == elements.len() {
            Ok(read)
        } else {
            Err(Error::invalid_length(elements.len(), &"fewer elements in array"))
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    #[inline(never)]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            // `2.0` is 2, as in answers.
            Value::Number(number) => match integer(number) {
                Some(integer) => visitor.visit_i64(integer),
                None => number.deserialize_any(visitor),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(elements) => self.read_array(elements, visitor),
            Value::Object(fields) => self.read_object(fields, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// Only from an object: fields have names.
    #[inline(never)]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(given) => self.read_object(given, visitor),
            other => Err(Error::invalid_type(unexpected(other), &ObjectWith(fields))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

/// What was expected in place of something that is not an object.
struct ObjectWith(&'static [&'static str]);

impl Expected for ObjectWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.0.iter().map(|field| format!("{field:?}: …")).collect();
        write!(f, "an object such as {{{}}}", fields.join(", "))
    }
}

struct Elements<'p, 'de> {
    all: &'de [Value],
    next: usize,
    path: &'p Path<'de>,
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Error;

    #[inline(never)]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(value) = self.all.get(self.next) else { return Ok(None) };

        self.path.enter(Segment::Index(self.next));
        self.next += 1;

        let read = seed.deserialize(Reader { value, path: self.path })?;
        self.path.leave();
        Ok(Some(read))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.len() - self.next)
    }
}

struct Fields<'p, 'de> {
    rest: serde_json::map::Iter<'de>,
    value: Option<&'de Value>,
    path: &'p Path<'de>,
}

impl<'de> MapAccess<'de> for &mut Fields<'_, 'de> {
    type Error = Error;

    #[inline(never)]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        // Entered before the name is read, so that the error about an unknown field names it.
        self.path.enter(Segment::Field(name));
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline(never)]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.value.take().expect("invariant: a value is asked for after its key");
        let read = seed.deserialize(Reader { value, path: self.path })?;
        self.path.leave();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        pairs: Vec<(u8, i64)>,
        inner: BTreeMap<String, Inner>,
        optional: Option<bool>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        name: String,
        side: Side,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Side {
        Left,
        Right,
    }

    fn error(value: &Value) -> String {
        read::<Outer>("input", value).expect_err("it does not fit")
    }

    #[test]
    fn a_value_that_fits_is_read() {
        let value = json!({
            "pairs": [[1, -2.0], [255.0, 9_007_199_254_740_993_i64]],
            "inner": { "x": { "name": "a", "side": "left" }, "y": { "side": "right", "name": "" } },
            "optional": null,
        });

        let inner = [("x", "a", Side::Left), ("y", "", Side::Right)]
            .map(|(key, name, side)| (key.to_owned(), Inner { name: name.to_owned(), side }));
        let pairs = vec![(1, -2), (255, 9_007_199_254_740_993)];

        assert_eq!(
            read::<Outer>("input", &value),
            Ok(Outer { pairs, inner: inner.into(), optional: None })
        );
    }

    #[test]
    fn an_error_names_the_field_in_which_it_is() {
        let whole = json!({ "pairs": [[1, 2], [3, 4]], "inner": { "x": { "name": "a", "side": "left" } }, "optional": true });
        let with = |pointer: &str, value: Value| {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            error(&changed)
        };

        assert_eq!(
            with("/pairs/1/0", json!(256)),
            "input field `pairs[1][0]`: invalid value: integer `256`, \
             expected an integer from 0 to 255"
        );
        assert_eq!(
            with("/pairs/1/1", json!(0.5)),
            "input field `pairs[1][1]`: invalid type: floating point `0.5`, expected an integer"
        );
        assert_eq!(
            with("/pairs/0", json!([1])),
            "input field `pairs[0]`: invalid length 1, expected a tuple of size 2"
        );
        assert_eq!(
            with("/pairs/0", json!([1, 2, 3])),
            "input field `pairs[0]`: invalid length 3, expected fewer elements in array"
        );
        assert_eq!(
            with("/inner/x", json!({ "name": "a" })),
            "input field `inner.x`: missing field `side`"
        );
        assert_eq!(
            with("/inner/x", json!(["a", "left"])),
            "input field `inner.x`: invalid type: sequence, expected an object such as {\"name\": …, \"side\": …}"
        );
        assert_eq!(
            with("/optional", json!(1)),
            "input field `optional`: invalid type: integer `1`, expected a boolean"
        );
        assert_eq!(
            with("/inner/x/side", json!("up")),
            "input field `inner.x.side`: unknown variant `up`, expected `left` or `right`"
        );
        assert_eq!(
            with("/inner", json!({ "x": { "name": "a", "side": "left", "z": 1 } })),
            "input field `inner.x.z`: unknown field `z`, expected `name` or `side`"
        );
    }

    #[test]
    fn an_error_of_the_whole_value_names_no_field() {
        assert_eq!(error(&json!({})), "input: missing field `pairs`");
        let expected = r#"an object such as {"pairs": …, "inner": …, "optional": …}"#;
        for (value, found) in [(json!([]), "sequence"), (json!(null), "null")] {
            let message = format!("input: invalid type: {found}, expected {expected}");
            assert_eq!(error(&value), message);
        }
    }
}
