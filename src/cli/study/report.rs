//! `study report`: tables, figures and the page, from records only.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use reqwest::Url;
use serde_json::json;

use super::load;
use super::read_records;
use crate::cli::Configuration;
use crate::cli::output::{Output, note, print, print_json};
use prime_study::records::Record;
use prime_study::report::{Choice, write_report};
use prime_study::tables::check_items;
use prime_study::training::read_training;

#[derive(Args)]
pub struct ReportArguments {
    /// Files of records (JSON Lines)
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    records: Vec<PathBuf>,
    /// Folder for report.html, figures, tables and records.parquet
    #[arg(long, value_name = "FOLDER", default_value = "report", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Study file whose section `report` chooses pairs, tables and figures
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    study: Option<PathBuf>,
    /// Compare two systems; repeatable [default: the first with each other one]
    #[arg(long = "pair", value_name = "LEFT=RIGHT")]
    pairs: Vec<String>,
    /// The paper's number of a table or figure, such as T2 or F12; repeatable [default: all]
    #[arg(long = "show", value_name = "NUMBER", value_delimiter = ',')]
    show: Vec<String>,
    /// Records of a training, which the trainer writes beside the model: adds its curves;
    /// repeatable
    #[arg(long = "training", value_name = "FILE", value_hint = ValueHint::FilePath)]
    trainings: Vec<PathBuf>,
    /// Address of the daemon that carried out the runs (`study run --url`), such as
    /// http://127.0.0.1:7433: values in figures lead to their runs in its studio
    #[arg(long, value_name = "URL", value_parser = web_address)]
    studio: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// An address that a page can lead to.
fn web_address(text: &str) -> Result<String, String> {
    let is_web = Url::parse(text).is_ok_and(|url| {
        // Everybody who reads the page would read a password.
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
    });
    is_web
        .then(|| text.to_owned())
        .ok_or_else(|| "give the address alone, such as http://127.0.0.1:7433".to_owned())
}

fn choice(arguments: &ReportArguments) -> anyhow::Result<Choice> {
    let mut choice = match &arguments.study {
        Some(path) => load(path, &Configuration::default())?.choice,
        None => Choice::default(),
    };

    if !arguments.pairs.is_empty() {
        let pair = |text: &String| {
            let (left, right) =
                text.split_once('=').with_context(|| format!("--pair {text}: write LEFT=RIGHT"))?;
            anyhow::Ok((left.to_owned(), right.to_owned()))
        };
        choice.pairs = arguments.pairs.iter().map(pair).collect::<anyhow::Result<_>>()?;
    }

    if !arguments.show.is_empty() {
        check_items(&arguments.show)?;
        choice.show.clone_from(&arguments.show);
    }

    choice.daemon.clone_from(&arguments.studio);
    choice.trainings =
        arguments.trainings.iter().map(|path| read_training(path)).collect::<Result<_, _>>()?;

    Ok(choice)
}

/// Leaves out the study's pairs of systems that were not run, as in a part of the study. `--pair`
/// must be right.
fn keep_pairs_of(records: &[Record], pairs: &mut Vec<(String, String)>) {
    pairs.retain(|(left, right)| {
        let missing = [left, right]
            .into_iter()
            .find(|name| records.iter().all(|record| record.system != **name));
        if let Some(missing) = missing {
            note!(
                "`{left}` and `{right}` are not compared: the records have no runs of `{missing}`"
            );
        }
        missing.is_none()
    });
}

pub fn report(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let mut choice = choice(arguments)?;
    let records = read_records(&arguments.records)?;
    if arguments.pairs.is_empty() {
        keep_pairs_of(&records.records, &mut choice.pairs);
    }

    let written = write_report(&records, &choice, &arguments.out)?;
    if arguments.output == Output::Json {
        print_json(&json!({
            "page": written.page,
            "figures": written.figures,
            "tables": written.tables,
            "runs": written.records,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "{}: {} figures and {} tables of {} runs\n",
        written.page.display(),
        written.figures,
        written.tables,
        written.records
    ))?;
    Ok(ExitCode::SUCCESS)
}
