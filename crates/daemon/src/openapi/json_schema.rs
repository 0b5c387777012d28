//! Schemas of the document as JSON Schemas of their own, for those who read one at a time.

use serde_json::{Map, Value, json};

use super::document::described;

const COMPONENTS: &str = "#/components/schemas/";

/// Moves references from the document's components to `$defs`, and notes which are needed.
fn relocate(value: &mut Value, needed: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref")
                && let Some(name) = to.strip_prefix(COMPONENTS).map(str::to_owned)
            {
                *to = format!("#/$defs/{name}");
                needed.push(name);
            }
            fields.values_mut().for_each(|value| relocate(value, needed));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| relocate(value, needed)),
        _ => {}
    }
}

/// The schema of this name with everything that it refers to; one that accepts anything if there is
/// none.
pub fn json_schema(name: &str) -> Value {
    let document = described(false);
    let component = |name: &str| document["components"]["schemas"][name].clone();
    let mut needed = Vec::new();
    let mut schema = component(name);
    relocate(&mut schema, &mut needed);
    let mut definitions = Map::new();
    while let Some(name) = needed.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let mut definition = component(&name);
        relocate(&mut definition, &mut needed);
        definitions.insert(name, definition);
    }
    match schema.as_object_mut() {
        Some(fields) if !definitions.is_empty() => {
            fields.insert("$defs".to_owned(), Value::Object(definitions));
            schema
        }
        Some(_) => schema,
        None => json!({}),
    }
}
