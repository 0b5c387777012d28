//! The configuration reference page, generated from the schema and the shipped defaults. Pure.

use std::fmt::Write as _;

use serde_json::Value;

use super::check::expected;
use super::schema_value::is_list_of_tables;
use super::sections::Settings;

const HEAD: &str = "\
# Configuration

This page is generated from the types in `crates/settings/src/`: edit them and run
`prime-agents config schema --markdown > docs/configuration.md`.

Sources, in increasing precedence:

1. the shipped defaults, [`config/default.toml`](../config/default.toml);
2. each `--config FILE`, in the order given;
3. environment variables: `PRIME__RUN__FANOUT=4` sets `run.fanout` (`__` between the parts, any case);
4. `--set run.fanout=4`, in the order given.

Values in the environment and of `--set` are parsed as TOML, or taken as strings if they are not TOML, so
`--set log.level=debug` needs no quotes and a list is `--set 'agents.verifier.kinds=[\"format\", \"terminal\"]'`.
Unknown keys, wrong types and values out of range are errors, even in a layer that a later one overrides.
`prime-agents config show` prints the effective configuration, and `prime-agents config check` validates it.

Editors complete and check a file whose first line names the schema, which `prime-agents config schema >schema.json` writes:
`#:schema schema.json`. The shipped files name those in [`config/schema/`](../config/schema/).
";

/// The text of `docs/configuration.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let defaults = serde_json::to_value(Settings::built_in())
        .expect("invariant: every option has a form in JSON");
    let mut page = HEAD.to_owned();
    section(&mut page, &Settings::schema(), &defaults, "");
    page
}

fn section(page: &mut String, schema: &Value, defaults: &Value, at: &str) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let (tables, options): (Vec<_>, Vec<_>) = properties
        .iter()
        .partition(|(_, below)| below["type"] == "object" || is_list_of_tables(below));
    // Options before tables: in Markdown, what follows a heading belongs to that heading.
    if !options.is_empty() {
        page.push_str("\n| key | default | values | what it does |\n| --- | --- | --- | --- |\n");
    }

    for (key, below) in options {
        let (default, values, text) = (&defaults[key], expected(below), description(below));
        let default = if default.is_null() { "–".to_owned() } else { format!("`{default}`") };
        let row = format!("| `{key}` | {default} | {} | {} |", cell(&values), cell(&text));
        writeln!(page, "{row}").expect("invariant: writing to a string cannot fail");
    }

    for (key, below) in tables {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let (title, inner, default) = if is_list_of_tables(below) {
            (format!("[{path}]"), &below["items"], &Value::Null)
        } else if below["additionalProperties"]["type"] == "object" {
            // Only engines have a shipped entry, `tiny`, whose values are the defaults of all.
            (format!("{path}.<name>"), &below["additionalProperties"], &defaults[key]["tiny"])
        } else {
            (path.clone(), below, &defaults[key])
        };

        let text = description(below);
        writeln!(page, "\n## `[{title}]`\n\n{text}")
            .expect("invariant: writing to a string cannot fail");
        section(page, inner, default, &title);
    }
}

/// A doc comment as one line.
fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
