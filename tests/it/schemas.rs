//! The JSON Schemas of the configuration and of definitions, as editors use them: the validator is
//! not ours.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use prime_protocol::Role;
use prime_settings::Settings;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn json(toml: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(toml).expect("TOML")).expect("JSON")
}

fn validator(path: &Path) -> Validator {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a JSON Schema")
}

/// The TOML files of a folder.
fn toml_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

#[test]
fn every_shipped_file_names_its_schema_and_is_valid() {
    let folders = ["config", "agents/executor", "agents/verifier", "agents/coordinator"];
    let files: Vec<PathBuf> = folders.into_iter().flat_map(toml_files).collect();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
        let named =
            named.unwrap_or_else(|| panic!("{}: its first line names no schema", file.display()));

        let schema = validator(&file.parent().expect("a folder").join(named));
        let errors: Vec<_> = schema
            .iter_errors(&json(&text))
            .map(|error| format!("{}: {error}", error.instance_path))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
    }
}

#[test]
fn a_schema_accepts_parts_and_refuses_mistakes() {
    let schema = validator(&root().join("config/schema/configuration.json"));
    for text in [
        "",
        "[run]\nfanout = 4",
        "[engines.big]\nmodel = \"big.gguf\"",
        "[agents.executor.escalation]\nsamples = 3",
        "[presets.mine]\nfanout = 2",
        "[pools.gpu]\n[[pools.gpu.upstreams]]\nurl = \"http://h/v1\"\nmodel = \"m\"\n\
         concurrent_max = 4",
    ] {
        assert!(schema.is_valid(&json(text)), "{text}");
    }

    for text in [
        "[run]\nfan_out = 4",
        "[run]\nfanout = 0",
        "[run]\nfanout = \"4\"",
        "[agents.verifier]\nkinds = [\"formats\"]",
        // Lists are not merged: an entry is complete.
        "[pools.gpu]\n[[pools.gpu.upstreams]]\nurl = \"http://h/v1\"",
    ] {
        assert!(!schema.is_valid(&json(text)), "{text}");
    }

    let definition = validator(&root().join("config/schema/executor.json"));
    assert!(definition.is_valid(&json("implementation = \"llama\"\n[escalation]\nsamples = 2")));
    assert!(
        !definition.is_valid(&json("prompt = \"step\"")),
        "a definition names its implementation"
    );
}

#[test]
fn the_shipped_schemas_are_those_of_the_program() {
    let made = |role: Role| {
        (role.name(), format!("agents schema {role}"), Settings::definition_schema(role))
    };
    let configuration = ("configuration", "config schema".to_owned(), Settings::file_schema());
    for (name, command, schema) in
        [configuration, made(Role::Executor), made(Role::Verifier), made(Role::Coordinator)]
    {
        let shipped = fs::read_to_string(root().join(format!("config/schema/{name}.json")))
            .unwrap_or_default();
        let expected = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        assert!(
            shipped == expected,
            "write it anew: prime-agents {command} > config/schema/{name}.json"
        );
    }
}
