//! Finds parts of JSON text that would be lost when it is read. JSON allows integers of any length;
//! those outside −2^63 … 2^64−1 would be read as floats, lose digits, and then equal other
//! integers. It also allows several fields of one name in an object, of which only the last would
//! be read.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde_json::Value;

use super::error::quoted;
use super::numbers::EXACT;

/// A part of a text that would be read as another one, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{lost}")]
pub struct Lossy {
    /// Where it stands, such as `input.rows[2]`; empty for the whole text.
    pub path: String,
    /// What reading would change.
    pub lost: Lost,
}

/// What would be lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The digits of this number, cut if it is long.
    #[error("{}", reason(.0))]
    Digits(String),
    /// The values of all fields of this name but the last one.
    #[error(
        "the field `{0}` stands twice in one object, and only the last one would be read: leave out the other"
    )]
    Field(String),
}

fn reason(digits: &str) -> String {
    if is_float(digits) && digits.parse().is_ok_and(|value: f64| value.abs() < EXACT) {
        format!(
            "the float {digits} is not an integer and would be read as one; write it with fewer \
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

/// Returns whether an integer can be kept; a float always can.
fn is_kept_integer(number: &str) -> bool {
    is_float(number) || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

/// Returns whether a number equals at most one integer, and none unless it is one.
fn is_one_number(number: &str) -> bool {
    let is_small =
        |value: f64| value.abs() < EXACT && (value.fract() != 0.0 || is_integral(number));
    if is_float(number) { number.parse().is_ok_and(is_small) } else { is_kept_integer(number) }
}

/// Returns whether the text of a number is that of an integer, such as `1.50e1`.
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
    // An exponent that is not a number of 64 bits leaves nothing but zero.
    let exponent = exponent.parse::<i64>().ok();
    last.zip(exponent).is_some_and(|(last, exponent)| last.saturating_add(exponent) >= 0)
}

/// The path and the digits of the first float in a value that is 2^53 or more. Its digits are lost
/// already: it may stand for several integers.
pub fn large_float(value: &Value) -> Option<(String, String)> {
    fn find<'v>(value: &'v Value, open: &mut Vec<Open<'v>>) -> Option<(String, String)> {
        match value {
            Value::Number(number) => {
                let is_large =
                    number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= EXACT);
                is_large.then(|| (quoted(&Path(open)), number.to_string()))
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

/// Names of an object that are compared with each new one; more are sorted at its end.
const COMPARED_MAX: usize = 16;

/// The names of an object's fields so far.
#[derive(Default)]
struct Names<'t>(Vec<Cow<'t, str>>);

impl<'t> Names<'t> {
    /// Adds a name as it is written. While there are few, returns the name if it is there already.
    fn add(&mut self, written: &'t str) -> Option<String> {
        let name = if written.contains('\\') {
            // In a text that is not JSON, the name stays as it is.
            serde_json::from_str(&format!("\"{written}\""))
                .map_or(Cow::Borrowed(written), Cow::Owned)
        } else {
            Cow::Borrowed(written)
        };
        let is_known = self.0.len() < COMPARED_MAX && self.0.contains(&name);
        let doubled = is_known.then(|| name.to_string());
        self.0.push(name);
        doubled
    }

    /// A name that occurs twice, if there were too many to compare one by one.
    fn doubled(mut self) -> Option<String> {
        if self.0.len() <= COMPARED_MAX {
            return None;
        }
        self.0.sort_unstable();
        let doubled = self.0.windows(2).find(|names| names[0] == names[1])?;
        Some(doubled[0].to_string())
    }
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

/// The first part of a JSON text that would be lost: an integer that would lose digits, or a field
/// whose name occurs again in its object. A number with a fraction or an exponent is a float, and
/// loses none. Takes linear time, except for objects with many fields, whose names are sorted. The
/// result for a text that is not JSON is unspecified.
pub fn lossy(json: &str) -> Option<Lossy> {
    first_lost(json, is_kept_integer)
}

/// Like [`lossy`]; also the first float from 2^53 on, which would equal several integers.
pub fn lossy_number(json: &str) -> Option<Lossy> {
    first_lost(json, is_one_number)
}

fn first_lost(json: &str, is_kept: fn(&str) -> bool) -> Option<Lossy> {
    let bytes = json.as_bytes();
    let mut open: Vec<Open<'_>> = Vec::new();
    // The open objects' names, outermost first.
    let mut names: Vec<Names<'_>> = Vec::new();
    // True while the next string in an object is a name.
    let mut is_name = false;
    let mut at = 0;

    let field = |open: &[Open<'_>], name: &str| {
        let name = quoted(&name);
        let path = match open {
            [] => name.clone(),
            outer => format!("{}.{name}", quoted(&Path(outer))),
        };
        Some(Lossy { path, lost: Lost::Field(name) })
    };

    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;

        match byte {
            b'[' => open.push(Open::List(0)),
            b'{' => {
                open.push(Open::Object(""));
                names.push(Names::default());
                is_name = true;
            }
            b']' | b'}' => {
                if let Some(Open::Object(_)) = open.pop()
                    && let Some(doubled) = names.pop().and_then(Names::doubled)
                {
                    return field(&open, &doubled);
                }
                is_name = false;
            }
            b',' => match open.last_mut() {
                Some(Open::List(index)) => *index += 1,
                Some(Open::Object(_)) => is_name = true,
                None => {}
            },
            b'"' => {
                at = start + string_len(&json[start..]);
                if let Some(Open::Object(name)) = open.last_mut().filter(|_| is_name) {
                    *name = json.get(start + 1..at - 1).unwrap_or_default();
                    is_name = false;
                    let name = *name;
                    if let Some(doubled) = names.last_mut().and_then(|names| names.add(name)) {
                        open.pop();
                        return field(&open, &doubled);
                    }
                }
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                at += bytes[at..].iter().position(|byte| !is_part(byte)).unwrap_or(json.len() - at);

                let number = &json[start..at];
                if !is_kept(number) {
                    let (path, digits) = (quoted(&Path(&open)), quoted(&number));
                    return Some(Lossy { path, lost: Lost::Digits(digits) });
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
            let found = lossy(json).expect(json);
            let lost = Lost::Digits(digits.to_owned());
            assert_eq!((found.path.as_str(), found.lost), (path, lost), "{json}");
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
            // Not JSON: any result will do, but no panic.
            "]]},\"",
            "\"\\",
            "\"",
            "{\"é",
        ] {
            assert_eq!(lossy(json), None, "{json}");
        }
    }

    #[test]
    fn a_field_that_stands_twice_in_one_object_is_named_with_its_place() {
        let many = |last: &str| {
            let fields: Vec<_> = (0..40).map(|at| format!(r#""f{at}": {at}"#)).collect();
            format!(r#"{{"s": [{{{}, "{last}": 0}}]}}"#, fields.join(", "))
        };
        for (json, path, name) in [
            (r#"{"a": 1, "b": 2, "a": 3}"#, "a", "a"),
            (r#"{"a": 1, "\u0061": 2}"#, "a", "a"),
            (r#"{"s": [1, {"x": {}, "x": "x"}]}"#, "s[1].x", "x"),
            (r#"{"a": {"b": [], "c": {"b": 1}, "b": 2}}"#, "a.b", "b"),
            (&many("f7"), "s[0].f7", "f7"),
        ] {
            let found = lossy(json).expect(json);
            let lost = Lost::Field(name.to_owned());
            assert_eq!((found.path.as_str(), found.lost), (path, lost), "{json}");
        }
        for json in [
            r#"{"a": "a", "b": "a", "c": ["a", "a"], "d": {"a": 1}}"#,
            r#"[{"a": 1}, {"a": 1}]"#,
            r#"{"a\\": 1, "a\"": 2, "a": ","}"#,
            &many("f40"),
        ] {
            assert_eq!(lossy(json), None, "{json}");
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
            assert!(found.to_string().contains("is not an integer"), "{found}");
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
        assert_eq!((found.0.as_str(), found.1.as_str()), ("a[1]", "9007199254740992.0"));

        let value =
            serde_json::json!({"a": [u64::MAX, i64::MIN, 9_007_199_254_740_991.0], "b": "1e300"});
        assert_eq!(large_float(&value), None);
    }

    #[test]
    fn a_message_is_short_however_long_the_number_and_its_path() {
        let json = format!(r#"{{"{}": {}}}"#, "é".repeat(9_000), "7".repeat(9_000));
        let found = lossy(&json).expect("found");
        assert!(found.to_string().len() < 1_000 && found.path.len() < 1_000, "{found}");
    }
}
