//! Numbers of different types compared by their values, without rounding either of them.

use std::cmp::Ordering;

use serde_json::Value;

/// 2^53: from here on a float may stand for several integers.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as JSON and CEL have them.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// −2^63 to 2^64−1.
    Whole(i128),
    /// A float, which may be an integer too.
    Double(f64),
}

impl Number {
    /// The number that JSON text has.
    pub fn of_json(number: &serde_json::Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Self::Whole(whole.into()),
            (None, Some(whole)) => Self::Whole(whole.into()),
            (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// The integer that it is, if it is one of −2^63 to 2^64−1.
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::Double(double) if double.fract() == 0.0 => {
                // Saturates far outside of the range.
                #[expect(clippy::cast_possible_truncation, reason = "it has no fraction")]
                let whole = double as i128;
                (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&whole).then_some(whole)
            }
            Self::Double(_) => None,
        }
    }

    /// The order of two numbers; `None` if one of them is NaN.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(&other),
            (Self::Whole(whole), Self::Double(double)) => compare_mixed(whole, double),
            (Self::Double(double), Self::Whole(whole)) => {
                compare_mixed(whole, double).map(Ordering::reverse)
            }
        }
    }
}

/// The order of an integer and a double.
fn compare_mixed(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }

    let floor = double.floor();
    // Saturates far outside of the range of integers, infinities as well.
    #[expect(clippy::cast_possible_truncation, reason = "a floor has no fraction")]
    let order = whole.cmp(&(floor as i128));
    Some(order.then(if double > floor { Ordering::Less } else { Ordering::Equal }))
}

/// Returns whether two JSON values are equal: numbers by value, objects in any order of their keys.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Number::of_json(one).compare(Number::of_json(other)) == Some(Ordering::Equal)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

/// A decimal number, without its sign: `digits` times ten to the power of `exponent`. The digits do
/// not end in a zero, except those of zero, which has the exponent 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// Reads the text of a number; `None` if it has more than 38 digits, or an exponent that no
    /// double has.
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('-').unwrap_or(text);
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let mut exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 1_000)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));

        let mut digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        exponent -= i32::try_from(fraction.len()).ok()?;
        if digits == 0 {
            return Some(Self { digits, exponent: 0 });
        }

        while digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        Some(Self { digits, exponent })
    }
}

/// Returns whether a number is a multiple of another one. Integers are exact; a double is the
/// shortest decimal number that reads as it, so that 0.3 is a multiple of 0.1. No number is a
/// multiple of zero.
pub fn is_multiple(number: &serde_json::Number, of: &serde_json::Number) -> bool {
    let (Some(number), Some(of)) =
        (Decimal::read(&number.to_string()), Decimal::read(&of.to_string()))
    else {
        return false;
    };
    if of.digits == 0 {
        return false;
    }
    if number.digits == 0 {
        return true;
    }

    let shift = number.exponent - of.exponent;
    if shift < 0 {
        // The divisor's digits, shifted, must divide the number's; they may outgrow them.
        let power = 10_u128.checked_pow(shift.unsigned_abs());
        let divisor = power.and_then(|power| of.digits.checked_mul(power));
        return divisor.is_some_and(|divisor| number.digits.is_multiple_of(divisor));
    }

    // Both have at most 20 digits, so that ten remainders fit.
    let mut rest = number.digits % of.digits;
    for _ in 0..shift {
        if rest == 0 {
            break;
        }
        rest = rest * 10 % of.digits;
    }
    rest == 0
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use serde_json::json;

    use super::*;

    #[test]
    fn integers_and_doubles_are_compared_by_value() {
        const TWO_63: f64 = 9_223_372_036_854_775_808.0;
        const TWO_64: f64 = 18_446_744_073_709_551_616.0;
        let (min, max) = (i128::from(i64::MIN), i128::from(u64::MAX));

        for (whole, double, order) in [
            (9_007_199_254_740_992, EXACT, Equal),
            (9_007_199_254_740_993, EXACT, Greater),
            (9_007_199_254_740_991, EXACT, Less),
            (-9_007_199_254_740_993, -EXACT, Less),
            (9_999_999_999_999_999, 1e16, Less),
            (10_000_000_000_000_000, 1e16, Equal),
            (i128::from(i64::MAX), TWO_63, Less),
            (1 << 63, TWO_63, Equal),
            (min, -TWO_63, Equal),
            (min, -1e19, Greater),
            (max, TWO_64, Less),
            (max, 18_446_744_073_709_549_568.0, Greater),
            (max, f64::INFINITY, Less),
            (min, f64::NEG_INFINITY, Greater),
            (0, -0.0, Equal),
            (0, f64::MIN_POSITIVE, Less),
            (0, -f64::MIN_POSITIVE, Greater),
            (2, 1.5, Greater),
            (1, 1.5, Less),
            (-2, -1.5, Less),
            (-1, -1.5, Greater),
        ] {
            let (one, other) = (Number::Whole(whole), Number::Double(double));
            assert_eq!(one.compare(other), Some(order), "{whole} {double}");
            assert_eq!(other.compare(one), Some(order.reverse()), "{double} {whole}");
        }

        let nan = Number::Double(f64::NAN);
        assert_eq!((nan.compare(Number::Whole(0)), nan.compare(nan)), (None, None));
    }

    #[test]
    fn a_double_is_an_integer_only_if_it_has_no_fraction() {
        for (double, whole) in [
            (-9_223_372_036_854_775_808.0, Some(i128::from(i64::MIN))),
            (18_446_744_073_709_549_568.0, Some(18_446_744_073_709_549_568)),
            (18_446_744_073_709_551_616.0, None),
            (-9_223_372_036_854_777_856.0, None),
            (-0.0, Some(0)),
            (0.5, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(Number::Double(double).whole(), whole, "{double}");
        }
    }

    #[test]
    fn json_values_are_equal_by_value() {
        for (one, other, is_equal) in [
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), false),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0), false),
            (json!(u64::MAX), json!(u64::MAX - 1), false),
            (json!(0), json!(1e-17), false),
            (json!(0), json!(-0.0), true),
            (json!([1, {"a": 2, "b": [3]}]), json!([1.0, {"b": [3.0], "a": 2.0}]), true),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
            (json!([1]), json!([1, 1]), false),
            (json!("1"), json!(1), false),
            (json!(null), json!(false), false),
            (json!("a"), json!("a"), true),
        ] {
            assert_eq!(equal(&one, &other), is_equal, "{one} {other}");
            assert_eq!(equal(&other, &one), is_equal, "{other} {one}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (number, of, is) in [
            (json!(9_007_199_254_740_993_i64), json!(2), false),
            (json!(9_007_199_254_740_993_i64), json!(3), true),
            (json!(1_000_000_000_000_000_001_i64), json!(10), false),
            (json!(1_000_000_000_000_000_010_i64), json!(10), true),
            (json!(-9), json!(3), true),
            (json!(-10), json!(3), false),
            (json!(u64::MAX), json!(u64::MAX), true),
            (json!(u64::MAX), json!(u64::MAX - 1), false),
            (json!(u64::MAX), json!(0.5), true),
            (json!(0), json!(7), true),
            (json!(0.0), json!(0.1), true),
            (json!(-0.5), json!(0.5), true),
            (json!(0.3), json!(0.1), true),
            (json!(19.99), json!(0.01), true),
            (json!(4.55), json!(0.1), false),
            (json!(0.1), json!(0.3), false),
            (json!(1.5), json!(1), false),
            (json!(1.5), json!(0.75), true),
            (json!(1e15), json!(10), true),
            (json!(1e300), json!(3), false),
            (json!(3e300), json!(3), true),
            (json!(5e-324), json!(1e300), false),
            (json!(1e300), json!(5e-324), true),
            (json!(1), json!(0), false),
        ] {
            let (Value::Number(number), Value::Number(of)) = (&number, &of) else {
                panic!("numbers")
            };
            assert_eq!(is_multiple(number, of), is, "{number} of {of}");
        }
    }
}
