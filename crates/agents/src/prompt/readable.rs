//! Inputs and states as a person would note them down: one field per line, list items numbered from
//! 0, the rows of a grid below each other.

use serde_json::Value;

/// Longest list whose items are numbered.
const NUMBERED_MAX: usize = 32;

/// A JSON object as lines without a last newline; any other value as one line.
pub(super) fn readable(value: &Value) -> String {
    let Value::Object(fields) = value else { return short(value) };
    let mut text = String::new();
    for (name, value) in fields {
        write_field(&mut text, 0, name, value);
    }
    text.truncate(text.trim_end().len());
    text
}

fn write_field(text: &mut String, indent: usize, name: &str, value: &Value) {
    let pad = "  ".repeat(indent);
    let lines = match value {
        Value::Object(fields) if !fields.is_empty() => {
            *text += &format!("{pad}{name}:\n");
            for (name, value) in fields {
                write_field(text, indent + 1, name, value);
            }
            return;
        }
        Value::Array(rows) if rows.iter().any(|row| row.is_array() || row.is_object()) => {
            let rows = rows.iter().enumerate();
            let rows = rows.map(|(place, row)| format!("{pad}  [{place}]: {}\n", row_of(row)));
            format!("{pad}{name}:\n{}", rows.collect::<Vec<_>>().concat())
        }
        Value::Array(values) if (1..=NUMBERED_MAX).contains(&values.len()) => {
            let values = values.iter().enumerate();
            let values = values.map(|(place, value)| format!(" [{place}]={}", short(value)));
            format!("{pad}{name}:{}\n", values.collect::<Vec<_>>().concat())
        }
        Value::Array(values) if !values.is_empty() => {
            let all: Vec<_> = values.iter().map(short).collect();
            format!("{pad}{name} ({} values, from place 0): {}\n", all.len(), all.join(" "))
        }
        other => format!("{pad}{name}: {}\n", short(other)),
    };
    *text += &lines;
}

/// A row of a grid or table.
fn row_of(row: &Value) -> String {
    match row {
        Value::Array(cells) if !cells.is_empty() => {
            let cells: Vec<_> = cells.iter().map(short).collect();
            cells.join(" ")
        }
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name} {}", short(value))).collect();
            fields.join(", ")
        }
        other => short(other),
    }
}

/// A value within a line.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        // Text that could break the line is quoted.
        Value::String(text) if text.chars().any(char::is_control) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "(empty)".to_owned(),
        Value::Object(fields) if fields.is_empty() => "(empty)".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_reads_like_a_note() {
        let state = json!({
            "queens": [2, 5], "next": 0, "last": "", "board": [[1, 0], [0, 1]], "free": [],
            "nodes": [{"left": null, "key": 7}], "counts": {"swaps": 3, "done": false},
            "best": null,
        });
        let expected = "\
queens: [0]=2 [1]=5
next: 0
last: (empty)
board:
  [0]: 1 0
  [1]: 0 1
free: (empty)
nodes:
  [0]: left none, key 7
counts:
  swaps: 3
  done: false
best: none";
        assert_eq!(readable(&state), expected);
        assert_eq!(readable(&json!({"queens": [2, 5], "z": 1})), "queens: [0]=2 [1]=5\nz: 1");
    }

    #[test]
    fn a_long_list_has_no_numbers_and_a_line_stays_a_line() {
        let short_list: Vec<u32> = (0..32).collect();
        assert!(readable(&json!({ "a": short_list })).ends_with(" [31]=31"));
        let long_list: Vec<u32> = (0..33).collect();
        let text = readable(&json!({ "a": long_list }));
        assert!(text.starts_with("a (33 values, from place 0): 0 1 2"), "{text}");

        assert_eq!(readable(&json!({"a": "x\ny"})), r#"a: "x\ny""#);
        assert_eq!(readable(&json!("a b")), "a b");
    }
}
