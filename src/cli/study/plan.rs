//! `study plan`: runs, and an estimate of steps, tokens, time and price from a short trial.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueHint};
use serde::Serialize;

use super::narrowing::Narrowing;
use super::own_tasks::give_tasks;
use super::prices::PriceArguments;
use super::systems::{PoolPlaces, check_shared, settings, start};
use super::{RecordsFile, load, read_records};
use crate::cli::bench::{CONCURRENT, turns_of, with_engines};
use crate::cli::output::{Output, print};
use crate::cli::own_model::OwnModel;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::study::{Spendings, run_study};
use prime_settings::Settings;
use prime_study::definition::{AskedRun, Source, Study};
use prime_study::plan::{Cost, Plan, plan as plan_of};
use prime_study::records::{Key, Record};

#[derive(Args)]
pub struct PlanArguments {
    /// Study file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    narrowing: Narrowing,
    #[command(flatten)]
    records: RecordsFile,
    /// Runs of each system that are tried first; 0 estimates from the records alone. They are not
    /// recorded
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=1_000)
    )]
    trial: usize,
    /// Runs at a time
    #[arg(
        long,
        value_name = "N",
        default_value_t = CONCURRENT,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000)
    )]
    concurrent: usize,
    #[command(flatten)]
    prices: PriceArguments,
    #[command(flatten)]
    configuration: OwnModel,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A plan with its total, for programs.
#[derive(Serialize)]
struct Shown<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    to_do: u64,
    total: Option<Cost>,
}

/// The first unfinished runs of each system that can be tried here, `each` of them, in the study's
/// order.
fn tried(study: &Study, finished: &BTreeSet<Key>, each: usize) -> Vec<AskedRun> {
    let mut counts = vec![0; study.systems.len()];
    let mut runs = Vec::new();
    for run in study.runs() {
        let is_here = !matches!(study.systems[run.system].source, Source::Answers(_));
        if is_here && counts[run.system] < each && !finished.contains(&run.key(study)) {
            counts[run.system] += 1;
            runs.push(run);
        }
        if counts.iter().all(|count| *count >= each) {
            break;
        }
    }
    runs
}

pub fn plan(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let configuration = arguments.configuration.resolved()?;
    let mut study = load(&arguments.file, &configuration)?;
    arguments.narrowing.apply(&mut study)?;
    let all: Vec<Settings> = study
        .systems
        .iter()
        .map(|system| settings(&study, system, &configuration))
        .collect::<anyhow::Result<_>>()?;
    check_shared(&study, &all)?;
    let _given = give_tasks(&mut study, &all)?;

    let path = arguments.records.path(&study.name);
    let mut known = if path.exists() { read_records(&[path])?.records } else { Vec::new() };
    let finished: BTreeSet<Key> =
        known.iter().filter(|record| record.is_measured()).map(Record::key).collect();

    let runs = tried(&study, &finished, arguments.trial);
    if !runs.is_empty() {
        known.extend(trial(arguments, &study, &all, &runs)?);
    }

    let plan = plan_of(&study, &finished, &known, arguments.concurrent, arguments.prices.price());
    let shown = Shown { plan: &plan, to_do: plan.to_do(), total: plan.total() };

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&shown)? + "\n")?,
        Output::Text => print(table(&plan))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn trial(
    arguments: &PlanArguments,
    study: &Study,
    all: &[Settings],
    runs: &[AskedRun],
) -> anyhow::Result<Vec<Record>> {
    if let Some(settings) = all.first() {
        start_log(settings);
    }

    let needed: BTreeSet<usize> = runs.iter().map(|run| run.system).collect();
    with_engines(all, turns_of(arguments.concurrent, all), async |resources| {
        let mut places = PoolPlaces::default();
        let contestants = study.systems.iter().enumerate().map(|(place, system)| {
            needed
                .contains(&place)
                .then(|| start(study, system, &all[place], resources, &mut places))
                .transpose()
        });
        let contestants: Vec<_> = contestants.collect::<anyhow::Result<_>>()?;

        let mut records = Vec::new();
        let spendings = Spendings::new(study, &[], runs);
        run_study(
            study,
            &contestants,
            runs,
            &spendings,
            arguments.concurrent,
            || true,
            |record| {
                records.push(record);
                anyhow::Ok(())
            },
        )
        .await?;
        Ok(records)
    })
}

fn table(plan: &Plan) -> Table {
    let header = [
        "system",
        "runs",
        "finished",
        "trial runs",
        "proposals",
        "prompt tokens",
        "completion tokens",
        "time",
        "price",
    ];

    let cost = |cost: Option<Cost>| match cost {
        None => ["unknown"; 5].map(str::to_owned),
        Some(cost) => [
            format!("{:.0}", cost.proposals),
            format!("{:.0}", cost.prompt_tokens),
            format!("{:.0}", cost.completion_tokens),
            duration(cost.seconds),
            format!("{:.2}", cost.price),
        ],
    };

    let row = |name: String, counts: [String; 3], estimate: Option<Cost>| {
        let [runs, finished, trial] = counts;
        let [proposals, prompt, completion, time, price] = cost(estimate);
        [name, runs, finished, trial, proposals, prompt, completion, time, price]
    };

    let mut rows: Vec<_> = plan
        .systems
        .iter()
        .map(|system| {
            let counts = [
                system.runs.to_string(),
                system.finished.to_string(),
                system.trial_runs.to_string(),
            ];
            row(system.system.clone(), counts, system.estimate)
        })
        .collect();

    let sum = |of: fn(&prime_study::plan::SystemPlan) -> u64| {
        plan.systems.iter().map(of).sum::<u64>().to_string()
    };
    let counts = [
        sum(|system| system.runs),
        sum(|system| system.finished),
        sum(|system| system.trial_runs as u64),
    ];

    rows.push(row("all".to_owned(), counts, plan.total()));
    Table::new(header, rows)
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3_600.0),
    }
}
