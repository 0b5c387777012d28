//! `study run`: makes the runs of a study that have no record yet. Killed at any time, it continues
//! from its records when it is started again.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueHint};
use serde_json::json;

use super::daemons::{DaemonArguments, contestant, fields};
use super::narrowing::Narrowing;
use super::own_tasks::{add_digests, check_found, give_tasks};
use super::prices::{PriceArguments, amount};
use super::systems::{PoolPlaces, check_shared, provenance_of_answers, settings, start};
use super::{RecordsFile, load};
use crate::cli::bench::{CONCURRENT, turns_of, with_engines};
use crate::cli::output::{Output, count, note, print_json};
use crate::cli::own_model::OwnModel;
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::evaluation::study::{Spendings, records_of_answers, run_study};
use prime_service::app::check_agents;
use prime_settings::Settings;
use prime_study::definition::{AskedRun, Source, Study, System, Unit};
use prime_study::plan::cost_of;
use prime_study::records::{Provenance, Record, RecordLog};

#[derive(Args)]
pub struct RunArguments {
    /// Study file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    narrowing: Narrowing,
    #[command(flatten)]
    records: RecordsFile,
    #[command(flatten)]
    daemons: DaemonArguments,
    /// Runs at a time; with 1, latencies are those of a run that has the machine for itself
    #[arg(
        long,
        value_name = "N",
        default_value_t = CONCURRENT,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000)
    )]
    concurrent: usize,
    #[command(flatten)]
    prices: PriceArguments,
    /// Start no further run once the recorded runs have cost this; needs a price
    #[arg(long, value_name = "PRICE", value_parser = amount)]
    price_max: Option<f64>,
    #[command(flatten)]
    configuration: OwnModel,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Why the JSON says that runs are left.
const PRICE_MAX: &str = "price_max";

/// What a session of runs did.
#[derive(Default)]
struct Tally {
    made: usize,
    not_measured: usize,
    /// Measured and right runs by system, in the order in which they ended first.
    systems: Vec<(String, u64, u64)>,
    /// Reason of the first run that was not measured.
    reason: Option<String>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.made += 1;
        if record.is_measured() {
            let place = self.systems.iter().position(|(name, ..)| *name == record.system);
            let place = place.unwrap_or_else(|| {
                self.systems.push((record.system.clone(), 0, 0));
                self.systems.len() - 1
            });
            let (_, measured, right) = &mut self.systems[place];
            *measured += 1;
            *right += u64::from(record.right);
        } else {
            self.not_measured += 1;
            self.reason = self.reason.take().or_else(|| record.failure.clone());
        }
    }
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let configuration = arguments.configuration.resolved()?;
    let mut study = load(&arguments.file, &configuration)?;
    arguments.narrowing.apply(&mut study)?;

    let daemons = arguments.daemons.is_given().then(|| arguments.daemons.daemons()).transpose()?;
    let is_remote = |system: &System| {
        daemons.is_some() && !system.is_null && matches!(system.source, Source::Run { .. })
    };
    let of = |system: &System| {
        if is_remote(system) {
            ensure!(
                system.samples.is_none(),
                "system `{}`: samples of runs are drawn in this process: leave out --url, or \
                 choose other systems with --system",
                system.name
            );
            ensure!(
                !system.is_matched,
                "system `{}`: a run ends at another one's spending in this process only: leave out \
                 --url, or choose other systems with --system",
                system.name
            );
            // Checked before anything runs. The daemons' own configuration holds for the rest.
            fields(&study, system)?;
            return Ok(configuration.load()?);
        }
        settings(&study, system, &configuration)
    };

    let all: Vec<Settings> = study.systems.iter().map(of).collect::<anyhow::Result<_>>()?;
    check_shared(&study, &all)?;
    let price = arguments.prices.price();
    // What a daemon's models cost is in its own configuration.
    ensure!(
        arguments.price_max.is_none()
            || price.is_some()
            || daemons.is_some()
            || all.iter().any(Settings::has_price),
        "--price-max needs what tokens cost: give --prompt-price and --completion-price, or \
         configure the `price` of an engine or a pool"
    );
    if let Some(settings) = all.first() {
        start_log(settings);
    }
    let given = give_tasks(&mut study, &all)?;

    let path = arguments.records.path(&study.name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    let mut log = RecordLog::open(&path)?;
    if log.torn_bytes() > 0 {
        note!(
            "{}: removed a last line of {} bytes that was not written whole",
            path.display(),
            log.torn_bytes()
        );
    }

    check_found(log.found(), given.as_ref())?;
    take_answers(&study, &all, &mut log)?;
    let is_timed = study.matched.as_ref().is_some_and(|matched| matched.unit == Unit::Seconds);
    ensure!(
        !is_timed || arguments.concurrent == 1,
        "`budget.match = \"seconds\"` compares times, which runs beside each other lengthen: give \
         --concurrent 1"
    );
    let is_answered =
        |run: &AskedRun| matches!(study.systems[run.system].source, Source::Answers(_));
    let is_due = |run: &AskedRun| !is_answered(run) && !log.is_measured(&run.key(&study));
    let due: Vec<AskedRun> = study.runs().filter(is_due).collect();

    note!(
        "{}: {} of {} runs to do; records in {}",
        study.name,
        due.len(),
        study.runs_count(),
        path.display()
    );

    let printed = |tally: &Tally, stopped: Option<&str>| {
        if arguments.output == Output::Json {
            print_json(&json!({
                "study": study.name,
                "records": path,
                "runs": study.runs_count(),
                "due": due.len(),
                "recorded": tally.made,
                "not_measured": tally.not_measured,
                "reason": tally.reason,
                "stopped": stopped,
            }))?;
        }
        anyhow::Ok(())
    };
    if due.is_empty() {
        printed(&Tally::default(), None)?;
        return Ok(ExitCode::SUCCESS);
    }

    let recorded = log.found().iter().fold(0.0, |sum, record| sum + cost_of(record, price));
    let spent = Cell::new(recorded);
    let price_max = arguments.price_max.unwrap_or(f64::INFINITY);
    let may_start = || spent.get() < price_max;
    if !may_start() {
        note!(
            "--price-max: the recorded runs have cost {:.2} already: no run is made",
            spent.get()
        );
        printed(&Tally::default(), Some(PRICE_MAX))?;
        return Ok(ExitCode::FAILURE);
    }

    let needed: BTreeSet<usize> = due.iter().map(|run| run.system).collect();
    let used: Vec<&Settings> = needed
        .iter()
        .filter(|place| !is_remote(&study.systems[**place]))
        .map(|place| &all[*place])
        .collect();
    let turns = turns_of(arguments.concurrent, used.iter().copied());

    let (tally, finished) = with_engines(used, turns, async |resources| {
        let mut session = Session::with_parts(vec![due.len() as u64], "study", "run")?;
        let (mut contestants, mut places) = (Vec::new(), PoolPlaces::default());

        let version = match &daemons {
            Some(daemons) => daemons.versions().await.map_err(anyhow::Error::msg)?,
            None => String::new(),
        };

        for (place, system) in study.systems.iter().enumerate() {
            contestants.push(match &daemons {
                _ if !needed.contains(&place) => None,
                Some(daemons) if is_remote(system) => {
                    Some(contestant(&study, system, daemons, &version)?)
                }
                _ => Some(start(&study, system, &all[place], resources, &mut places)?),
            });
        }

        for (place, contestant) in (0..).zip(&mut contestants) {
            let Some(contestant) = contestant else { continue };
            contestant.provenance.system_place = Some(place);
            add_digests(&mut contestant.provenance, given.as_ref());
        }

        // `start` opens the pools of one-shot systems, so they can be checked only now.
        check_agents(resources).await.map_err(anyhow::Error::msg)?;

        let (mut tally, on_part) = (Tally::default(), session.on_part());
        let spendings = Spendings::new(&study, log.found(), &due);
        let concurrent = arguments.concurrent;
        let work =
            run_study(&study, &contestants, &due, &spendings, concurrent, may_start, |record| {
                on_part();
                spent.set(spent.get() + cost_of(&record, price));
                tally.add(&record);
                log.append(&record).map_err(anyhow::Error::from)
            });
        session.next(work).await?;
        anyhow::Ok((tally, session.finish()))
    })?;

    log.sync()?;
    let has_cost_enough = !may_start() && tally.made < due.len();
    let stopped = match finished.note() {
        Some(_) => Some("interrupted"),
        None if has_cost_enough => Some(PRICE_MAX),
        None => None,
    };
    printed(&tally, stopped)?;
    note!("{} runs recorded", tally.made);
    for (name, measured, right) in &tally.systems {
        note!("{name}: {right} of {} right", count(*measured, "measured run"));
    }
    if let Some(reason) = &tally.reason {
        note!(
            "{} of them were not measured, and are due at the next `study run`; \
             the first: {reason}",
            tally.not_measured
        );
    }
    if has_cost_enough {
        note!(
            "stopped at --price-max: the recorded runs have cost {:.2}, and {} are left",
            spent.get(),
            count(due.len() as u64 - tally.made as u64, "run")
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(finished.exit_code())
}

/// Records the outputs that were made elsewhere.
fn take_answers(study: &Study, all: &[Settings], log: &mut RecordLog) -> anyhow::Result<()> {
    for (place, system) in study.systems.iter().enumerate() {
        let Source::Answers(path) = &system.source else { continue };
        let provenance = Provenance {
            system_place: u32::try_from(place).ok(),
            ..provenance_of_answers(&all[place])
        };
        let records = records_of_answers(path, study, place, &provenance)?;
        let new: Vec<_> = records.iter().filter(|record| !log.is_measured(&record.key())).collect();
        note!("{}: {} outputs, {} of them new", system.name, records.len(), new.len());
        for record in new {
            log.append(record)?;
        }
    }
    Ok(())
}
