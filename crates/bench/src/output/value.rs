//! One rule for the equality of answers: JSON has one type of number, so `8.0` is the integer 8.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// 2^53: from here on a float may stand for several integers, and stands for none.
const INEXACT_FROM: f64 = 9_007_199_254_740_992.0;

/// The integer that a float without a fraction is, below 2^53.
pub(crate) fn integer(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let is_exact = float.fract() == 0.0 && float.abs() < INEXACT_FROM;
    #[expect(clippy::cast_possible_truncation, reason = "it is exact")]
    is_exact.then_some(float as i64)
}

fn has_float_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => integer(number).is_some(),
        Value::Array(entries) => entries.iter().any(has_float_integer),
        Value::Object(fields) => fields.values().any(has_float_integer),
        _ => false,
    }
}

fn make_exact(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = integer(number) {
                *number = integer.into();
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(make_exact),
        Value::Object(fields) => fields.values_mut().for_each(make_exact),
        _ => {}
    }
}

/// The value with every float that is an integer below 2^53 written as one, at any depth.
pub fn exact(value: &Value) -> Cow<'_, Value> {
    if !has_float_integer(value) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    make_exact(&mut value);
    Cow::Owned(value)
}

/// Returns whether two answers are the same. Numbers are compared by value, integers of any size
/// exactly; the order of fields does not count; a text is not a number.
pub fn equal(a: &Value, b: &Value) -> bool {
    a == b || exact(a) == exact(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value() {
        for (a, b) in [
            (json!(8.0), json!(8)),
            (json!(-0.0), json!(0)),
            (json!({"a": [1.0, {"b": -2.0}]}), json!({"a": [1, {"b": -2}]})),
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1.0})),
            (json!(1e3), json!(1000)),
            (json!(u64::MAX), json!(u64::MAX)),
        ] {
            assert!(equal(&a, &b) && equal(&b, &a), "{a} {b}");
        }
        for (a, b) in [
            (json!(8.5), json!(8)),
            (json!("8"), json!(8)),
            (json!(true), json!(1)),
            (json!(null), json!(0)),
            (json!([8]), json!(8)),
            // As floats these are the same.
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
            (json!(9_007_199_254_740_992.0), json!(9_007_199_254_740_992_u64)),
            (json!(18_446_744_073_709_551_615_u64), json!(1.844_674_407_370_955_2e19)),
        ] {
            assert!(!equal(&a, &b) && !equal(&b, &a), "{a} {b}");
        }
    }
}
