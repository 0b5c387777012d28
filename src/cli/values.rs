//! Parsers of argument values. Shells complete what has possible values.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use serde::de::DeserializeOwned;

use prime_bench::prompts::Style;
use prime_bench::tasks::{self, Category, Difficulty, Kind};
use prime_problems::lossy;

/// Longest JSON file that is read as an argument, in bytes.
const JSON_BYTES_MAX: u64 = 256 << 20;

/// The slug of a task. Any text parses, so that a typo is answered with the nearest slug instead of
/// all slugs.
#[derive(Clone)]
pub struct TaskParser;

impl TypedValueParser for TaskParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(tasks::all().map(|task| PossibleValue::new(task.spec().slug))))
    }
}

fn named<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

pub fn difficulty() -> impl TypedValueParser<Value = Difficulty> {
    named(Difficulty::ALL.map(Difficulty::name))
}

pub fn category() -> impl TypedValueParser<Value = Category> {
    named(Category::ALL.map(Category::name))
}

pub fn kind() -> impl TypedValueParser<Value = Kind> {
    named(Kind::ALL.map(Kind::name))
}

/// The index of an instance. Its range is checked with the instance.
pub fn index(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "give an integer, such as 0 or 199".to_owned())
}

/// Reads the JSON of an option: the option's value itself if it is an object or an array, else a
/// file.
pub fn json_or_file<T: DeserializeOwned>(option: &str, path: &Path) -> anyhow::Result<T> {
    if let Some(text) = path.to_str().filter(|text| text.trim_start().starts_with(['{', '['])) {
        return read_json(option, text);
    }

    let place = format!("{option} {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("{place}: cannot be read"))?;
    // A device may never end.
    file.take(JSON_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("{place}: cannot be read"))?;

    ensure!(
        text.len() as u64 <= JSON_BYTES_MAX,
        "{place}: longer than {} MiB",
        JSON_BYTES_MAX >> 20
    );

    // Some editors begin a file in UTF-8 with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    read_json(&place, text)
}

fn read_json<T: DeserializeOwned>(place: &str, text: &str) -> anyhow::Result<T> {
    let value = serde_json::from_str(text).with_context(|| format!("{place}: is not JSON"))?;
    match lossy(text) {
        Some(lost) if lost.path.is_empty() => bail!("{place}: {lost}"),
        Some(lost) => bail!("{place}: at {}: {lost}", lost.path),
        None => Ok(value),
    }
}

/// A style that asks for the whole trace in one reply.
///
/// # Errors
/// Says which there are.
pub fn style_of_one_reply(text: &str) -> Result<Style, String> {
    let names: Vec<_> =
        Style::ALL.into_iter().filter(|style| style.asks_for_all()).map(Style::name).collect();
    let style = text.parse::<Style>().ok().filter(|style| style.asks_for_all());
    style.ok_or_else(|| format!("unknown style {text:?}: use {}", names.join(", ")))
}
