//! The configuration from a user's view: precedence, errors and their messages, the shipped files,
//! the reference.

mod keys;
mod layers;
mod mistakes;
mod shipped_files;

use std::fs;
use std::path::PathBuf;

use prime_settings::Settings;

const NO_FILES: &[PathBuf] = &[];

fn environment(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

fn sets(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Loads with these `--set` arguments only.
fn with_sets(arguments: &[&str]) -> Result<Settings, String> {
    Settings::load(NO_FILES, environment(&[]), &sets(arguments)).map_err(|error| error.to_string())
}

/// Loads with this text as a config file; `FILE` in the message replaces its path.
fn with_file(text: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    fs::write(&path, text).unwrap();
    let path_text = path.display().to_string();
    Settings::load(&[path], environment(&[]), &[])
        .map_err(|error| error.to_string().replace(&path_text, "FILE"))
}
