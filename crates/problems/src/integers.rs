//! Integers in JSON text that cannot be kept. JSON allows integers of any length; those outside
//! −2^63 … 2^64−1 would be read as floats, lose digits, and then equal other integers.

use std::fmt::{self, Display};

use serde_json::Value;

use super::error::quoted;
use super::numbers::EXACT;

/// An integer that would lose digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reason(digits))]
pub struct LossyInteger {
    /// Where it stands, such as `input.rows[2]`; empty for the whole text.
    pub path: String,
    /// As it is written; its beginning, if it is long.
    pub digits: String,
}

fn reason(digits: &str) -> String {
    if is_float(digits) && digits.parse().is_ok_and(|value: f64| value.abs() < EXACT) {
        format!(
            "the float {digits} is no integer and would be read as one; write it with fewer \
             digits, or as a text"
        )
    } else if is_float(digits) {
        format!(
            "the float {digits} is not below 2^53 and would equal several integers; write it as an \
             integer or as a text"
        )
    } else {
        format!(
            "the integer {digits} is outside -2^63 to 2^64-1 and would lose digits; write it as a \
             text"
        )
    }
}

fn is_float(number: &str) -> bool {
    number.contains(['.', 'e', 'E'])
}

/// Whether an integer can be kept; a float always can.
fn is_kept_integer(number: &str) -> bool {
    is_float(number) || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

/// Whether a number equals at most one integer, and none unless it is one.
fn is_one_number(number: &str) -> bool {
    let is_small =
        |value: f64| value.abs() < EXACT && (value.fract() != 0.0 || is_integral(number));
    if is_float(number) { number.parse().is_ok_and(is_small) } else { is_kept_integer(number) }
}

/// Whether the text of a number is that of an integer, such as `1.50e1`.
fn is_integral(number: &str) -> bool {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('-');

    // The place of the last digit that is not zero, counted from the point.
    let fraction = fraction.trim_end_matches('0');
    let zeros = whole.len() - whole.trim_end_matches('0').len();
    let last = match (fraction.len(), zeros) {
        (0, zeros) if zeros == whole.len() => return true,
        (0, zeros) => i64::try_from(zeros).ok(),
        (places, _) => i64::try_from(places).ok().map(|places| -places),
    };
    // An exponent that is no number of 64 bits leaves nothing but zero.
    let exponent = exponent.parse::<i64>().ok();
    last.zip(exponent).is_some_and(|(last, exponent)| last.saturating_add(exponent) >= 0)
}

/// The first float of a value from 2^53 on. Its digits are lost already: it may stand for several
/// integers.
pub fn large_float(value: &Value) -> Option<LossyInteger> {
    fn find<'v>(value: &'v Value, open: &mut Vec<Open<'v>>) -> Option<LossyInteger> {
        match value {
            Value::Number(number) => {
                let is_large =
                    number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= EXACT);
                is_large
                    .then(|| LossyInteger { path: quoted(&Path(open)), digits: number.to_string() })
            }
            Value::Array(values) => values.iter().enumerate().find_map(|(index, value)| {
                open.push(Open::List(index));
                let found = find(value, open);
                open.pop();
                found
            }),
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                open.push(Open::Object(name));
                let found = find(value, open);
                open.pop();
                found
            }),
            _ => None,
        }
    }
    find(value, &mut Vec::new())
}

/// What is open at a place in the text.
enum Open<'t> {
    List(usize),
    /// The name of the field, as it is written.
    Object(&'t str),
}

struct Path<'a, 't>(&'a [Open<'t>]);

impl Display for Path<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, open) in self.0.iter().enumerate() {
            match open {
                Open::List(index) => write!(f, "[{index}]")?,
                Open::Object(name) if depth == 0 => f.write_str(name)?,
                Open::Object(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

/// The number of bytes of the string that begins at the start of this text, with its quotes.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The first integer of a JSON text that would lose digits. A number with a fraction or an exponent
/// is a float, and is none. Takes time in proportion to the text; of a text that is not JSON,
/// whatever it finds.
pub fn lossy_integer(json: &str) -> Option<LossyInteger> {
    first_not(json, is_kept_integer)
}

/// As [`lossy_integer`]; also the first float from 2^53 on, which would equal several integers.
pub fn lossy_number(json: &str) -> Option<LossyInteger> {
    first_not(json, is_one_number)
}

fn first_not(json: &str, is_kept: fn(&str) -> bool) -> Option<LossyInteger> {
    let bytes = json.as_bytes();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut at = 0;

    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;

        match byte {
            b'[' => open.push(Open::List(0)),
            b'{' => open.push(Open::Object("")),
            b']' | b'}' => drop(open.pop()),
            b',' => {
                if let Some(Open::List(index)) = open.last_mut() {
                    *index += 1;
                }
            }
            b'"' => {
                at = start + string_len(&json[start..]);
                // A value overwrites the name of its field, which is not needed any more.
                if let Some(Open::Object(name)) = open.last_mut() {
                    *name = json.get(start + 1..at - 1).unwrap_or_default();
                }
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                at += bytes[at..].iter().position(|byte| !is_part(byte)).unwrap_or(json.len() - at);

                let number = &json[start..at];
                if !is_kept(number) {
                    let (path, digits) = (quoted(&Path(&open)), quoted(&number));
                    return Some(LossyInteger { path, digits });
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_integer_that_would_lose_digits_is_named_with_its_place() {
        for (json, path, digits) in [
            ("18446744073709551616", "", "18446744073709551616"),
            (" -9223372036854775809 ", "", "-9223372036854775809"),
            (
                r#"{"a": 1, "b": [1, {"c\"": "d", "e": [[], 99999999999999999999]}]}"#,
                "b[1].e[1]",
                "99999999999999999999",
            ),
            (r#"[[1], "x,[{", 99999999999999999999]"#, "[2]", "99999999999999999999"),
            (r#"{"\\": 99999999999999999999}"#, r"\\", "99999999999999999999"),
        ] {
            let found = lossy_integer(json).expect(json);
            assert_eq!((found.path.as_str(), found.digits.as_str()), (path, digits), "{json}");
        }
    }

    #[test]
    fn what_is_kept_or_no_integer_is_left_alone() {
        for json in [
            "18446744073709551615",
            "-9223372036854775808",
            "-0",
            "1e30",
            "123456789012345678901234567890.0",
            "-1E+400",
            r#""99999999999999999999""#,
            r#"{"99999999999999999999": "\\\"99999999999999999999"}"#,
            "",
            // No JSON: found or not, but without a panic.
            "]]},\"",
            "\"\\",
            "\"",
            "{\"é",
        ] {
            assert_eq!(lossy_integer(json), None, "{json}");
        }
    }

    #[test]
    fn a_float_that_would_equal_several_integers_is_named() {
        for json in ["9007199254740992.0", "[1, -1E+400]", r#"{"n": 1.8446744073709552e19}"#] {
            let found = lossy_number(json).expect(json);
            assert!(found.to_string().starts_with("the float "), "{found}");
        }
        for json in [
            "0.99999999999999999999",
            "[1e-400]",
            "-123.00000000000000000001",
            // 2^52 + 0.5, between two neighbouring doubles.
            "4503599627370496.5e0",
        ] {
            let found = lossy_number(json).expect(json);
            assert!(found.to_string().contains("is no integer"), "{found}");
        }
        for json in ["1.50e1", "100e-2", "0.0e-9", "-0", "1.0", "1E+3", "0e99999999999999999999"] {
            assert_eq!(lossy_number(json), None, "{json}");
        }
        for json in ["2251799813685248.5e0", "9007199254740993", "1.5", "-0.0", "[1e15]"] {
            assert_eq!(lossy_number(json), None, "{json}");
        }
    }

    #[test]
    fn a_large_float_of_a_value_is_named_with_its_place() {
        let value = serde_json::json!({"a": [1, 9_007_199_254_740_992.0], "b": 1e300});
        let found = large_float(&value).expect("2^53");
        assert_eq!((found.path.as_str(), found.digits.as_str()), ("a[1]", "9007199254740992.0"));

        let value =
            serde_json::json!({"a": [u64::MAX, i64::MIN, 9_007_199_254_740_991.0], "b": "1e300"});
        assert_eq!(large_float(&value), None);
    }

    #[test]
    fn a_message_is_short_however_long_the_number_and_its_path() {
        let json = format!(r#"{{"{}": {}}}"#, "é".repeat(9_000), "7".repeat(9_000));
        let found = lossy_integer(&json).expect("found");
        assert!(found.to_string().len() < 1_000 && found.path.len() < 1_000, "{found}");
    }
}
