//! The JSON Schema of the configuration: generated from the types, and the only source of keys,
//! types and ranges for validation, suggestions and the reference page.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::implementation::implementations;
use super::schema_value::child;
use super::sections::Settings;
use prime_protocol::Role;

impl Settings {
    /// The JSON Schema (draft 2020-12) of a configuration file, with the documentation as
    /// descriptions. Every key is optional, except in lists of tables, which are not merged with
    /// anything.
    #[must_use]
    pub fn file_schema() -> Value {
        let mut schema = Self::schema();
        allow_partial(&mut schema);
        schema
    }

    /// The JSON Schema of the merged configuration.
    #[must_use]
    pub fn schema() -> Value {
        let generator =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        generator.into_generator().into_root_schema_for::<Settings>().to_value()
    }

    /// [`Settings::schema`], made once: the daemon checks the settings of each request.
    pub(super) fn shared_schema() -> &'static Value {
        static SCHEMA: LazyLock<Value> = LazyLock::new(Settings::schema);
        &SCHEMA
    }
}

impl Settings {
    /// The JSON Schema of a role's definition files. Only `implementation` is required.
    #[must_use]
    pub fn definition_schema(role: Role) -> Value {
        let schema = Self::shared_schema();
        let section = child(schema, "agents").and_then(|agents| child(agents, role.name()));
        let mut section = section.expect("invariant: each role has a section").clone();

        allow_partial(&mut section);
        section["required"] = serde_json::json!(["implementation"]);

        // Unlike a section, a definition cannot name another definition.
        let names: Vec<_> = implementations(role).iter().map(|known| known.name).collect();
        section["properties"]["implementation"]["enum"] = serde_json::json!(names);

        section["$schema"] = schema["$schema"].clone();
        section["title"] = format!("A definition of the role {role}").into();
        section
    }
}

/// Makes every key of a table optional, at all depths except within lists.
fn allow_partial(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove("required");
    for (keyword, below) in schema {
        match (keyword.as_str(), below) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(allow_partial);
            }
            // `items` is left out: a table in a list is not merged with anything.
            ("additionalProperties", other) => allow_partial(other),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                all.iter_mut().for_each(allow_partial);
            }
            _ => {}
        }
    }
}
