//! A JSON Schema read as a tree of keys: what tables have, which values are allowed.

use serde_json::Value;

/// The schema of the value at `key`, or `None` if the table has no such key.
pub(super) fn child<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(key));
    named.or_else(|| schema.get("additionalProperties").filter(|other| other.is_object()))
}

/// The type of a value. An optional one may be omitted but not null.
pub(super) fn kind_of(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
}

/// Returns whether a table has user-defined keys.
pub(super) fn is_map(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(Value::is_object)
}

/// Returns whether a value is an array of tables, `[[section]]`.
pub(super) fn is_list_of_tables(schema: &Value) -> bool {
    schema["items"]["type"] == "object"
}

/// The allowed strings, if they are a fixed list.
pub(super) fn choices(schema: &Value) -> Option<Vec<String>> {
    let texts = |values: &[Value]| {
        values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(texts(values));
    }

    // An enum whose variants have documentation.
    let variants = schema.get("oneOf")?.as_array()?;
    Some(
        variants
            .iter()
            .filter_map(|variant| variant.get("const")?.as_str().map(str::to_owned))
            .collect(),
    )
}

/// Every dotted key of the configuration, tables included. `chosen` replaces user-defined names.
pub(super) fn keys(schema: &Value, chosen: &str) -> Vec<String> {
    fn walk(schema: &Value, at: &str, chosen: &str, out: &mut Vec<String>) {
        let mut visit = |key: &str, below: &Value| {
            let path = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
            out.push(path.clone());
            walk(below, &path, chosen, out);
        };

        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, below) in properties {
                visit(key, below);
            }
        }

        if is_map(schema) {
            visit(chosen, &schema["additionalProperties"]);
        }

        if is_list_of_tables(schema) {
            walk(&schema["items"], at, chosen, out);
        }
    }

    let mut out = Vec::new();
    walk(schema, "", chosen, &mut out);
    out
}
