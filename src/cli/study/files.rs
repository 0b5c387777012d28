//! `study check`, `schema`, `list` and `show`: study files, without running anything.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use serde_json::{Value, json};

use super::load;
use crate::cli::Configuration;
use crate::cli::output::{Output, note, print};
use crate::cli::table::Table;
use prime_study::definition::{Samples, Source, Study, System, schema as schema_of};
use prime_study::records::{COLUMNS, markdown};

#[derive(Args)]
pub struct CheckArguments {
    /// Study files
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    configuration: Configuration,
}

#[derive(Args)]
pub struct SchemaArguments {
    /// Print the columns of records as a Markdown table instead
    #[arg(long)]
    records: bool,
}

#[derive(Args)]
pub struct ListArguments {
    /// Folder of study files
    #[arg(default_value = "studies", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

#[derive(Args)]
pub struct ShowArguments {
    /// Study file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub fn check(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let mut is_good = true;
    for path in &arguments.files {
        match load(path, &arguments.configuration) {
            Ok(study) => print(format!("{}: {}\n", path.display(), size(&study)))?,
            Err(error) => {
                is_good = false;
                note!("{error}");
            }
        }
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(crate::cli::USAGE) })
}

pub fn schema(arguments: &SchemaArguments) -> anyhow::Result<ExitCode> {
    if arguments.records {
        print(markdown(COLUMNS))?;
    } else {
        print(serde_json::to_string_pretty(&schema_of())? + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();

    let row = |path: &PathBuf| {
        let (name, size, description) = match load(path, &Configuration::default()) {
            Ok(study) => (study.name.clone(), size(&study), study.description),
            Err(error) => (String::new(), "cannot be used".to_owned(), error.to_string()),
        };
        [path.display().to_string(), name, size, description]
    };

    print(Table::new(["file", "study", "runs", "description"], paths.iter().map(row)))?;
    Ok(ExitCode::SUCCESS)
}

fn size(study: &Study) -> String {
    let ask = &study.ask;
    let cells = ask.tasks.len() * ask.difficulties.len();
    let instances = u64::from(ask.instances) * ask.base_seeds.len() as u64;
    let own = match &ask.own[..] {
        [] => String::new(),
        names => format!(", and on the inputs of {}", names.join(", ")),
    };
    format!(
        "{} runs: {} systems on {} tasks ({cells} cells of {instances} instances, {} times){own}",
        study.runs_count(),
        study.systems.len(),
        ask.tasks.len(),
        ask.repeats
    )
}

fn source(source: &Source) -> String {
    match source {
        Source::Answers(path) => format!("outputs of {}", path.display()),
        Source::OneShot(one_shot) => {
            let without = match &one_shot.without[..] {
                [] => String::new(),
                parts => format!(" without {}", parts.join(", ")),
            };
            format!(
                "one answer of pool {} to the {} prompt{without}",
                one_shot.pool,
                one_shot.style.name()
            )
        }
        Source::Run { preset: None } => "runs".to_owned(),
        Source::Run { preset: Some(preset) } => format!("runs of preset {preset}"),
    }
}

/// Where a system's answers come from, and which of them counts.
fn answers_by(system: &System) -> String {
    let source = source(&system.source);
    match system.samples {
        None => source,
        Some(Samples { select, most }) => {
            let most = most.map_or_else(String::new, |most| format!(", at most {most}"));
            format!("{source}, sampled{most}, chosen by {}", select.name())
        }
    }
}

/// The names of the tasks, those that the user defines last.
fn names(study: &Study) -> Vec<&str> {
    let tasks = study.ask.tasks.iter().map(|task| task.spec().slug);
    tasks.chain(study.ask.own.iter().map(String::as_str)).collect()
}

/// A study for programs.
fn value(study: &Study) -> Value {
    let ask = &study.ask;
    let systems: Vec<Value> = study
        .systems
        .iter()
        .map(|system| {
            json!({
                "name": system.name, "source": answers_by(system), "sets": system.sets,
            })
        })
        .collect();

    json!({
        "study": study.name,
        "description": study.description,
        "runs": study.runs_count(),
        "kinds": study.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "tasks": names(study),
        "difficulties": ask.difficulties,
        "instances": ask.instances,
        "base_seeds": ask.base_seeds,
        "repeats": ask.repeats,
        "sampling_seed": ask.sampling_seed,
        "systems": systems,
        "pairs": study.choice.pairs,
        "show": study.choice.show,
    })
}

pub fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let study = load(&arguments.file, &Configuration::default())?;
    let value = value(&study);
    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&value)? + "\n")?,
        Output::Text => {
            let row =
                |system: &System| [system.name.clone(), answers_by(system), system.sets.join(", ")];
            let tasks = names(&study);
            let kinds: Vec<&str> = study.kinds.iter().map(|kind| kind.name()).collect();

            let table = Table::new(
                ["system", "answers by", "over the configuration"],
                study.systems.iter().map(row),
            );

            print(format!(
                "{}: {}\n{}\ntasks: {}\nverifiers may see: {}\n\n{table}",
                study.name,
                size(&study),
                study.description,
                tasks.join(", "),
                kinds.join(", ")
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
