//! How Python writes values: `str`, `repr` and `json.dumps`.

use minijinja::value::{Value, ValueKind};

/// Deepest nesting of a value that is written.
const DEPTH_MAX: usize = 64;

/// A float as Python writes it.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }

    // Both languages write the shortest digits that are read back as the same number, and differ
    // only in when they use an exponent.
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// What `str(value)` gives, which is what `{{ value }}` prints.
pub(crate) fn str(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => repr(value, 0),
    }
}

fn is_float(value: &Value) -> bool {
    value.kind() == ValueKind::Number && !value.is_integer()
}

fn repr(value: &Value, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "...".to_owned();
    }
    match value.kind() {
        ValueKind::None => "None".to_owned(),
        ValueKind::Undefined => "Undefined".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number if is_float(value) => {
            float(f64::try_from(value.clone()).unwrap_or_default())
        }
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Map => {
            let entries = value.try_iter().into_iter().flatten().map(|key| {
                let item = value.get_item(&key).unwrap_or_default();
                format!("{}: {}", repr(&key, depth + 1), repr(&item, depth + 1))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().into_iter().flatten().map(|item| repr(&item, depth + 1));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

/// A string literal of Python.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            letter if letter == quote => out.extend(['\\', letter]),
            letter if letter.is_ascii_control() => out += &format!("\\x{:02x}", letter as u32),
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// The arguments of `json.dumps` that templates use.
pub(crate) struct Json {
    pub(crate) indent: Option<usize>,
    pub(crate) item_separator: String,
    pub(crate) key_separator: String,
    pub(crate) sort_keys: bool,
}

impl Json {
    /// `json.dumps(value, ensure_ascii=False)`.
    ///
    /// # Errors
    /// The value has no form in JSON.
    pub(crate) fn dumps(&self, value: &Value) -> Result<String, String> {
        let mut out = String::new();
        self.write(value, 0, &mut out)?;
        Ok(out)
    }

    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("tojson: the value is nested deeper than {DEPTH_MAX}"));
        }
        match value.kind() {
            ValueKind::None => *out += "null",
            ValueKind::Bool => *out += if value.is_true() { "true" } else { "false" },
            ValueKind::Number if is_float(value) => {
                *out += &match f64::try_from(value.clone()).unwrap_or_default() {
                    number if number.is_nan() => "NaN".to_owned(),
                    number if number == f64::INFINITY => "Infinity".to_owned(),
                    number if number == f64::NEG_INFINITY => "-Infinity".to_owned(),
                    number => float(number),
                };
            }
            ValueKind::Number => *out += &value.to_string(),
            ValueKind::String => string(value.as_str().unwrap_or_default(), out),
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter().into_iter().flatten().collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.list('{', '}', keys.len(), depth, out, |at, out| {
                    string(&str(&keys[at]), out);
                    *out += &self.key_separator;
                    self.write(&value.get_item(&keys[at]).unwrap_or_default(), depth + 1, out)
                })?;
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
                self.list('[', ']', items.len(), depth, out, |at, out| {
                    self.write(&items[at], depth + 1, out)
                })?;
            }
            other => return Err(format!("tojson: a value of kind {other} has no form in JSON")),
        }
        Ok(())
    }

    fn list(
        &self,
        open: char,
        close: char,
        count: usize,
        depth: usize,
        out: &mut String,
        mut item: impl FnMut(usize, &mut String) -> Result<(), String>,
    ) -> Result<(), String> {
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent * depth));
            }
        };

        out.push(open);
        for at in 0..count {
            if at > 0 {
                *out += &self.item_separator;
            }
            line(depth + 1, out);
            item(at, out)?;
        }
        if count > 0 {
            line(depth, out);
        }
        out.push(close);
        Ok(())
    }
}

fn string(text: &str, out: &mut String) {
    // What must be escaped is the same in both; neither escapes more.
    *out += &serde_json::Value::from(text).to_string();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (value, expected) in [
            (Value::from(true), "True"),
            (Value::from(()), "None"),
            (Value::from(1.0), "1.0"),
            (Value::from(1e16), "1e+16"),
            (Value::from(0.00001), "1e-05"),
            (Value::from(0.0001), "0.0001"),
            (Value::from(-12), "-12"),
            (Value::from("it's"), "it's"),
            (Value::from(vec!["it's", "a\nb", "\"'"]), r#"["it's", 'a\nb', '"\'']"#),
        ] {
            assert_eq!(str(&value), expected);
        }
    }

    #[test]
    fn json_has_pythons_separators_and_no_escaped_letters() {
        let plain = Json {
            indent: None,
            item_separator: ", ".to_owned(),
            key_separator: ": ".to_owned(),
            sort_keys: false,
        };
        let value = Value::from_serialize(vec![vec![1, 2], vec![]]);
        assert_eq!(plain.dumps(&value), Ok("[[1, 2], []]".to_owned()));
        assert_eq!(plain.dumps(&Value::from("née \u{7f}</\"")), Ok("\"née \u{7f}</\\\"\"".into()));

        let indented = Json { indent: Some(2), item_separator: ",".to_owned(), ..plain };
        assert_eq!(indented.dumps(&value), Ok("[\n  [\n    1,\n    2\n  ],\n  []\n]".to_owned()));
    }
}
