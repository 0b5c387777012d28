//! Makes the list of built-in models of `models/built-in.toml` and the recipes that it names.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes a build script its folders in variables"
)]
fn folder(variable: &str) -> PathBuf {
    env::var(variable).expect("cargo sets it").into()
}

fn read(path: &Path) -> toml::Table {
    println!("cargo::rerun-if-changed={}", path.display());
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The strings of the list `table.key`; none if there is no such list.
fn strings<'t>(table: &'t toml::Table, key: &str) -> Vec<&'t str> {
    let list = table.get(key).and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().map(|value| value.as_str().expect("a list of strings")).collect()
}

/// What the model of a recipe was trained on.
fn trained_tasks(recipe: &toml::Table) -> Vec<&str> {
    ["data", "rehearsal"]
        .into_iter()
        .filter_map(|section| recipe.get(section)?.as_table())
        .flat_map(|section| strings(section, "tasks"))
        .collect()
}

fn main() {
    let models = folder("CARGO_MANIFEST_DIR").join("models");
    let list = read(&models.join("built-in.toml"));
    let entries = list["model"].as_array().expect("tables [[model]]");

    let mut text = String::from("&[\n");
    for entry in entries {
        let entry = entry.as_table().expect("a table [[model]]");
        let name = entry["name"].as_str().expect("a model's name");
        let unlearnt = strings(entry, "unlearnt");

        let recipe = read(&models.join(format!("{name}.toml")));
        let mut tasks = trained_tasks(&recipe);
        for task in &unlearnt {
            assert!(tasks.contains(task), "{name}: `{task}` is not a task of its recipe");
        }
        tasks.retain(|task| !unlearnt.contains(task));

        let bytes = if entry.contains_key("part") {
            format!("prime_models_2::{}", name.to_uppercase().replace('-', "_"))
        } else {
            let file = models.join(format!("{name}.gguf"));
            println!("cargo::rerun-if-changed={}", file.display());
            format!("include_bytes!({:?})", file.to_str().expect("a path in UTF-8"))
        };
        writeln!(text, "BuiltInModel {{ name: {name:?}, tasks: &{tasks:?}, bytes: {bytes} }},")
            .expect("a String takes everything");
    }
    text += "]";

    fs::write(folder("OUT_DIR").join("models.rs"), text).expect("the build's folder is writable");
}
