//! Integers in requests. JSON has one type of number, so `262144.0` is the integer 262144, as JSON Schema says.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};

/// Reads an integer that may be written with a fraction of zero.
struct Integer<T>(PhantomData<T>);

/// The integer that a number is, within the ranges of 64 bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
fn whole(number: f64) -> Option<Result<u64, i64>> {
    // 2^64 and 2^63 are floats, the greatest integers below are not.
    if number.fract() != 0.0 {
        None
    } else if (0.0..18_446_744_073_709_551_616.0).contains(&number) {
        Some(Ok(number as u64))
    } else if (-9_223_372_036_854_775_808.0..0.0).contains(&number) {
        Some(Err(number as i64))
    } else {
        None
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Integer<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::deserialize(number.into_deserializer())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::deserialize(number.into_deserializer())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        match whole(number) {
            Some(Ok(number)) => self.visit_u64(number),
            Some(Err(number)) => self.visit_i64(number),
            None => T::deserialize(number.into_deserializer()),
        }
    }
}

/// Reads an integer or nothing.
struct Optional<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Optional<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        required(deserializer).map(Some)
    }
}

/// For a field with an integer.
///
/// # Errors
/// It is no integer of this type.
pub fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Integer(PhantomData))
}

/// For a field with an integer or null, which may be left out.
///
/// # Errors
/// It is neither.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_option(Optional(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Fields {
        #[serde(deserialize_with = "required")]
        a: u32,
        #[serde(default, deserialize_with = "optional")]
        b: Option<i64>,
    }

    #[test]
    fn a_fraction_of_zero_is_none() {
        let read = |text: &str| serde_json::from_str::<Fields>(text);
        assert_eq!(read(r#"{"a": 262144.0, "b": -3.0}"#).unwrap(), Fields { a: 262_144, b: Some(-3) });
        assert_eq!(read(r#"{"a": 1e3, "b": null}"#).unwrap(), Fields { a: 1_000, b: None });
        assert_eq!(read(r#"{"a": 1}"#).unwrap(), Fields { a: 1, b: None });
        for (given, parts) in [
            (json!({"a": 1.5}), ["floating point `1.5`", "u32"]),
            (json!({"a": -1}), ["`-1`", "u32"]),
            (json!({"a": 1e10}), ["`10000000000`", "u32"]),
            (json!({"a": 1e300}), ["floating point", "u32"]),
            (json!({"a": "1"}), ["string \"1\"", "u32"]),
            (json!({"a": 1, "b": true}), ["boolean `true`", "i64"]),
        ] {
            let error = serde_json::from_value::<Fields>(given.clone()).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{given}: {error}");
        }
    }
}
