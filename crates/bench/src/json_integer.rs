//! Integers in requests. JSON has one type of number, so `262144.0` is the integer 262144, as JSON
//! Schema says.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};

/// Reads an integer that may be written with a fraction of zero.
struct Integer<T>(PhantomData<T>);

/// 2^53: from here on, a float may stand for several integers, the written one and its neighbours.
const INEXACT_FROM: f64 = 9_007_199_254_740_992.0;

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
        if number.fract() != 0.0 {
            // The type's own deserialiser words the refusal.
            return T::deserialize(number.into_deserializer());
        }

        // Integers beyond 64 bits arrive as floats too.
        if number.abs() >= INEXACT_FROM {
            let wanted = std::any::type_name::<T>();
            return Err(E::custom(format!(
                "floating point `{number:e}` is not exact: from 2^53 on, give digits alone, within the range of {wanted}"
            )));
        }

        #[expect(clippy::cast_possible_truncation, reason = "it is exact")]
        self.visit_i64(number as i64)
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

/// Deserialises a field with an integer.
///
/// # Errors
/// When the value is not an integer of this type.
pub fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Integer(PhantomData))
}

/// Deserialises a field with an integer or null, which may be left out.
///
/// # Errors
/// When the value is neither.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
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
        assert_eq!(
            read(r#"{"a": 262144.0, "b": -3.0}"#).unwrap(),
            Fields { a: 262_144, b: Some(-3) }
        );
        assert_eq!(read(r#"{"a": 1e3, "b": null}"#).unwrap(), Fields { a: 1_000, b: None });
        assert_eq!(read(r#"{"a": 1}"#).unwrap(), Fields { a: 1, b: None });

        for (given, parts) in [
            (json!({"a": 1.5}), ["floating point `1.5`", "u32"]),
            (json!({"a": -1}), ["`-1`", "u32"]),
            (json!({"a": 1e10}), ["`10000000000`", "u32"]),
            (json!({"a": 1e300}), ["floating point `1e300` is not exact", "u32"]),
            (json!({"a": 1, "b": 9_007_199_254_740_992.0}), ["not exact", "i64"]),
            (json!({"a": "1"}), ["string \"1\"", "u32"]),
            (json!({"a": 1, "b": true}), ["boolean `true`", "i64"]),
        ] {
            let error = serde_json::from_value::<Fields>(given.clone()).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{given}: {error}");
        }
    }

    #[test]
    fn the_neighbour_of_the_least_integer_is_not_taken_for_it() {
        let read = |text: &str| serde_json::from_str::<Fields>(text);
        assert_eq!(read(r#"{"a": 1, "b": -9223372036854775808}"#).unwrap().b, Some(i64::MIN));
        let error = read(r#"{"a": 1, "b": -9223372036854775809}"#).unwrap_err().to_string();
        assert!(error.contains("`-9.223372036854776e18` is not exact"), "{error}");
    }
}
