//! `study leaderboard`: the systems of a study, best first, as a page of Markdown.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueHint};

use super::{load, read_records};
use crate::cli::Configuration;
use crate::cli::output::{count, note, paragraph, print};
use prime_dataset::files::Whole;
use prime_study::definition::Study;
use prime_study::leaderboard::{Leaderboard, leaderboard as ranked};
use prime_study::tables::Table;

/// Columns of a page's prose.
const COLUMNS: usize = 100;

#[derive(Args)]
pub struct LeaderboardArguments {
    /// Files of records (JSON Lines), such as one that `study merge` wrote
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    records: Vec<PathBuf>,
    /// Study file that the records are of: its instances are the ones that count
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    study: PathBuf,
    /// File for the page, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

fn page(study: &Study, path: &Path, board: &Leaderboard) -> String {
    let instances = count(board.instances as u64, "instance");
    let tasks = count(study.ask.tasks.len() as u64, "task");
    let name = path.display();
    let intro = format!(
        "{} {instances} of {tasks}, as `{name}` asks. Anybody can add a row: `prime-agents study run {name} --model \
         MODEL`, then `prime-agents study merge` with the records so far and `NAME=` before the new ones, which judges \
         every answer again.",
        study.description.trim()
    );
    let tables: Vec<_> = board.tables.iter().map(Table::markdown).collect();
    let tables = tables.join("\n").replace("### ", "## ");
    let intro = paragraph(&intro, COLUMNS);
    format!("# Leaderboard: {}\n\n{intro}\n{tables}", study.name)
}

pub fn leaderboard(arguments: &LeaderboardArguments) -> anyhow::Result<ExitCode> {
    let LeaderboardArguments { records, study: path, out } = arguments;
    let study = load(path, &Configuration::default())?;
    let records = read_records(records)?;

    let board = ranked(&study, &records.records);
    ensure!(
        !board.tables.is_empty(),
        "no run of the study `{}` is in the records: they are of other studies or other instances",
        study.name
    );
    if board.left_out > 0 {
        let runs = count(board.left_out as u64, "run");
        note!("{runs} left out: `{}` does not ask for them", study.name);
    }

    let page = page(&study, path, &board);
    match out {
        Some(out) => {
            let failed = || format!("--out {}: cannot be written", out.display());
            let mut file = Whole::uncompressed(out).with_context(failed)?;
            file.write_all(page.as_bytes()).with_context(failed)?;
            file.finish().with_context(failed)?;
        }
        None => print(page)?,
    }
    Ok(ExitCode::SUCCESS)
}
