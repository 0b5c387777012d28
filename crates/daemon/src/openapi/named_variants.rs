//! Names for the variants of unions: generators of clients make a type of each schema that has one.

use serde_json::{Map, Value, json};

/// The schemas of the document.
type Schemas = Map<String, Value>;

const SCHEMAS: &str = "#/components/schemas/";

/// Moves the variants of all unions into schemas of their own.
pub fn add(document: &mut Value) {
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut)
    else {
        return;
    };

    let names: Vec<_> = schemas.keys().cloned().collect();
    // In two passes: a union's fields must be distributed before its variants leave it.
    for name in &names {
        distribute(schemas, name);
    }
    for name in &names {
        move_variants(schemas, name);
    }
}

/// The schema that a reference leads to.
fn referred<'s>(schemas: &'s Schemas, schema: &Value) -> Option<&'s Value> {
    schemas.get(schema["$ref"].as_str()?.strip_prefix(SCHEMAS)?)
}

/// Makes a union with further fields a union whose variants each have these fields: generators
/// cannot add fields to a union.
fn distribute(schemas: &mut Schemas, name: &str) {
    let Some(parts) = schemas[name]["allOf"].as_array() else { return };
    let variants_of = |part: &Value| referred(schemas, part)?["oneOf"].as_array();
    let Some((at, variants)) =
        parts.iter().enumerate().find_map(|(at, part)| Some((at, variants_of(part)?)))
    else {
        return;
    };

    let mut fields = parts.clone();
    fields.remove(at);
    let with_fields = |variant: &Value| {
        let parts: Vec<_> = std::iter::once(variant).chain(&fields).collect();
        json!({ "allOf": parts })
    };

    let variants: Vec<_> = variants.iter().map(with_fields).collect();

    let schema = &mut schemas[name];
    let description = schema["description"].take();
    *schema = json!({"oneOf": variants, "description": description});
}

/// The only text of a list.
fn only(texts: &Value) -> Option<&str> {
    match texts.as_array()?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

/// The one value of a variant's tag.
fn tag(variant: &Value) -> Option<&str> {
    let fields = variant["properties"].as_object();
    let own = fields.into_iter().flat_map(Map::values).find_map(|field| only(&field["enum"]));
    own.or_else(|| variant["allOf"].as_array()?.iter().find_map(tag))
}

/// `turn_failed` as `TurnFailed`.
fn type_name(words: &str) -> String {
    let word = |word: &str| {
        word.get(..1).map(|first| first.to_uppercase() + &word[1..]).unwrap_or_default()
    };
    words.split('_').map(word).collect()
}

/// A variant is named after its tag, or after the one field that it must have.
fn move_variants(schemas: &mut Schemas, name: &str) {
    let Some(variants) = schemas[name]["oneOf"].as_array().cloned() else { return };
    for (at, variant) in variants.into_iter().enumerate() {
        let Some(distinction) = tag(&variant).or_else(|| only(&variant["required"])) else {
            continue;
        };

        let own = format!("{name}{}", type_name(distinction));
        if !schemas.contains_key(&own) {
            schemas[name]["oneOf"][at] = json!({"$ref": format!("{SCHEMAS}{own}")});
            schemas.insert(own, variant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(fields: &Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": fields, "required": required})
    }

    #[test]
    fn variants_are_named_after_their_tag_or_their_field() {
        let ended = object(
            &json!({"why": {}, "event": {"type": "string", "enum": ["turn_ended"]}}),
            &["why", "event"],
        );
        let pattern = object(&json!({"pattern": {"type": "string"}}), &["pattern"]);

        let mut document = json!({"components": {"schemas": {
            "Event": {"oneOf": [ended, {"$ref": "#/components/schemas/Other"}]},
            "Form": {"oneOf": [pattern, {"type": "string"}]},
            "Other": {"type": "object"},
        }}});

        add(&mut document);

        let schemas = json!({
            "Event": {"oneOf": [
                {"$ref": "#/components/schemas/EventTurnEnded"}, {"$ref": "#/components/schemas/Other"}
            ]},
            "EventTurnEnded": ended,
            "Form": {"oneOf": [{"$ref": "#/components/schemas/FormPattern"}, {"type": "string"}]},
            "FormPattern": pattern,
            "Other": {"type": "object"},
        });
        assert_eq!(document["components"]["schemas"], schemas);
    }

    #[test]
    fn the_fields_beside_a_union_are_those_of_each_variant() {
        let tagged =
            |tag: &str| object(&json!({"event": {"type": "string", "enum": [tag]}}), &["event"]);
        let seq = object(&json!({"seq": {"type": "integer"}}), &["seq"]);
        let step = json!({"allOf": [{"$ref": "#/components/schemas/Step"}, tagged("step")]});
        let mut document = json!({"components": {"schemas": {
            "Event": {"oneOf": [tagged("started"), step]},
            "Line": {"allOf": [{"$ref": "#/components/schemas/Event"}, seq], "description": "A line."},
            "Step": {"type": "object"},
        }}});

        add(&mut document);

        let schemas = &document["components"]["schemas"];
        let line = json!({"description": "A line.", "oneOf": [
            {"$ref": "#/components/schemas/LineStarted"}, {"$ref": "#/components/schemas/LineStep"}
        ]});

        assert_eq!(schemas["Line"], line);
        assert_eq!(schemas["LineStarted"], json!({"allOf": [tagged("started"), seq]}));
        assert_eq!(schemas["LineStep"], json!({"allOf": [step, seq]}));
        assert_eq!(schemas["EventStep"], step);
    }
}
