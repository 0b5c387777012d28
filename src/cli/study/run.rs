//! `study run`: makes the runs of a study that have no record yet. Killed at any time, it goes on where it was.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueHint};

use super::RecordsFile;
use super::systems::{check_shared, provenance_of_answers, settings, start};
use crate::agents::Resources;
use crate::cli::bench::{CONCURRENT, with_engines};
use crate::cli::output::note;
use crate::cli::progress::Session;
use crate::cli::{Configuration, start_log};
use crate::evaluation::study::{Contestant, records_of_answers, run_study};
use crate::settings::Settings;
use prime_study::definition::{AskedRun, Source, Study, load};
use prime_study::records::{Record, RecordLog};

#[derive(Args)]
pub struct RunArguments {
    /// Study file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    records: RecordsFile,
    /// Run this system only; repeatable
    #[arg(long = "system", value_name = "NAME")]
    systems: Vec<String>,
    /// Runs at a time; with 1, latencies are those of a run that has the machine for itself
    #[arg(long, value_name = "N", default_value_t = CONCURRENT, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    concurrent: usize,
    #[command(flatten)]
    configuration: Configuration,
}

/// The systems that are run: all, or those of `--system`.
fn chosen(study: &Study, names: &[String]) -> anyhow::Result<BTreeSet<usize>> {
    let known = || study.systems.iter().map(|system| system.name.as_str());
    for name in names {
        let all: Vec<&str> = known().collect();
        anyhow::ensure!(all.contains(&name.as_str()), "--system {name}: the study has {}", all.join(", "));
    }
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|other| other == name);
    Ok(known().enumerate().filter(|(_, name)| is_chosen(name)).map(|(place, _)| place).collect())
}

/// What a session of runs did.
#[derive(Default)]
struct Tally {
    made: usize,
    not_measured: usize,
    /// Why, of the first that was not measured.
    reason: Option<String>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.made += 1;
        if !record.is_measured() {
            self.not_measured += 1;
            self.reason = self.reason.take().or_else(|| record.failure.clone());
        }
    }
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let study = load(&arguments.file)?;
    let chosen = chosen(&study, &arguments.systems)?;
    let all: Vec<Settings> = study
        .systems
        .iter()
        .map(|system| settings(&study, system, &arguments.configuration))
        .collect::<anyhow::Result<_>>()?;
    check_shared(&study, &all)?;
    if let Some(settings) = all.first() {
        start_log(settings);
    }
    let path = arguments.records.path(&study.name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    let mut log = RecordLog::open(&path)?;
    if log.torn_bytes() > 0 {
        note!("{}: removed a last line of {} bytes that was not written whole", path.display(), log.torn_bytes());
    }
    take_answers(&study, &chosen, &all, &mut log)?;
    let is_answered = |run: &AskedRun| matches!(study.systems[run.system].source, Source::Answers(_));
    let is_due =
        |run: &AskedRun| chosen.contains(&run.system) && !is_answered(run) && !log.is_measured(&run.key(&study));
    let due: Vec<AskedRun> = study.runs().filter(is_due).collect();
    note!("{}: {} of {} runs to do; records in {}", study.name, due.len(), study.runs_count(), path.display());
    if due.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let needed: BTreeSet<usize> = due.iter().map(|run| run.system).collect();
    let used: Vec<&Settings> = needed.iter().map(|place| &all[*place]).collect();
    let (tally, finished) = with_engines(used, async |resources| {
        let mut session = Session::with_parts(1, "study", u32::try_from(due.len()).unwrap_or(u32::MAX), "run")?;
        let contestants = contestants(&study, &needed, &all, resources)?;
        // Those of prompts are open only now.
        resources.pools.check().await.map_err(anyhow::Error::msg)?;
        let (mut tally, on_part) = (Tally::default(), session.on_part());
        let work = run_study(&study, &contestants, &due, arguments.concurrent, |record| {
            on_part();
            tally.add(&record);
            log.append(&record).map_err(anyhow::Error::from)
        });
        session.next(work).await?;
        anyhow::Ok((tally, session.finish()))
    })?;
    log.sync()?;
    note!("{} runs recorded", tally.made);
    if let Some(reason) = tally.reason {
        note!(
            "{} of them were not measured, and are due at the next `study run`; the first: {reason}",
            tally.not_measured
        );
    }
    Ok(finished.exit_code())
}

fn contestants(
    study: &Study,
    needed: &BTreeSet<usize>,
    all: &[Settings],
    resources: &Resources,
) -> anyhow::Result<Vec<Option<Contestant>>> {
    let one =
        |(place, system)| needed.contains(&place).then(|| start(study, system, &all[place], resources)).transpose();
    study.systems.iter().enumerate().map(one).collect()
}

/// Records the outputs that were made elsewhere.
fn take_answers(study: &Study, chosen: &BTreeSet<usize>, all: &[Settings], log: &mut RecordLog) -> anyhow::Result<()> {
    for (place, system) in study.systems.iter().enumerate().filter(|(place, _)| chosen.contains(place)) {
        let Source::Answers(path) = &system.source else { continue };
        let records = records_of_answers(path, study, place, &provenance_of_answers(&all[place]))?;
        let new: Vec<_> = records.iter().filter(|record| !log.is_measured(&record.key())).collect();
        note!("{}: {} outputs, {} of them new", system.name, records.len(), new.len());
        for record in new {
            log.append(record)?;
        }
    }
    Ok(())
}
