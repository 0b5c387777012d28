//! `prime-agents bench overhead`: what a turn of each kind of agent costs, without a model.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use comfy_table::Table;

use super::super::run::Output;
use super::super::{Configuration, start_log};
use super::{say, table};
use crate::agents::{AgentSet, Resources};
use crate::bench::overhead::{OverheadRow, Scene, Turns, Worker, overhead as measure};
use crate::bench::stub::Stub;
use crate::settings::{Settings, Upstream, UpstreamPool};
use prime_bench::tasks;
use prime_protocol::Role;

/// The task of the turns: the one that the example programs know.
const TASK: &str = "tower-of-hanoi";
/// The pool that leads to the server of this process.
const POOL: &str = "overhead-stub";

#[derive(Args)]
pub struct OverheadArguments {
    /// Turns of each kind, one after another and then side by side.
    #[arg(long, default_value_t = 1000, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000))]
    turns: u32,
    /// Turns that are under way at the same time, where they are side by side.
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    side_by_side: u32,
    #[command(flatten)]
    configuration: Configuration,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A kind of agent that is measured: its role, its implementation, and what rows call it.
const KINDS: [(Role, &str, &str); 6] = [
    (Role::Executor, "scripted", "scripted, in process"),
    (Role::Executor, "process", "process, over pipes"),
    (Role::Executor, "openai", "openai, a server on this machine"),
    (Role::Verifier, "rules", "rules, in process"),
    (Role::Verifier, "process", "process, over pipes"),
    (Role::Verifier, "ensemble", "ensemble of three, in process"),
];

/// The settings with this agent, and without anybody else who needs anything. A program that is configured is the one
/// that is measured; otherwise it is the example.
fn with(settings: &Settings, role: Role, implementation: &str, stub: &Stub, side_by_side: u32) -> Settings {
    let mut settings = settings.clone();
    let example = |role: Role| ["python3", "-B", &format!("agents/examples/{role}.py")].map(str::to_owned).to_vec();
    let agents = &mut settings.agents;
    let mut names = ["reference", "rules"];
    names[usize::from(role == Role::Verifier)] = implementation;
    names[0].clone_into(&mut agents.executor.implementation);
    names[1].clone_into(&mut agents.verifier.implementation);
    "threshold".clone_into(&mut agents.coordinator.implementation);
    for (role, program) in
        [(Role::Executor, &mut agents.executor.program), (Role::Verifier, &mut agents.verifier.program)]
    {
        if program.command.is_empty() {
            program.command = example(role);
        }
    }
    agents.verifier.ensemble.members = ["rules", "strict", "none"].map(str::to_owned).to_vec();
    POOL.clone_into(&mut agents.executor.pool);
    let upstream = Upstream {
        url: stub.url.clone(),
        model: "none".to_owned(),
        api_key_env: None,
        concurrent_max: side_by_side,
        weight: 1.0,
    };
    settings.pools.insert(POOL.to_owned(), UpstreamPool { upstreams: vec![upstream], ..UpstreamPool::default() });
    settings
}

fn cells(row: &OverheadRow) -> Vec<String> {
    let figure = |given: Option<f64>, digits: usize| given.map_or("-".to_owned(), |given| format!("{given:.digits$}"));
    let how = match (row.turns, row.side_by_side) {
        (0, _) => "-".to_owned(),
        (_, 1) => "one after another".to_owned(),
        (_, abreast) => format!("{abreast} side by side"),
    };
    vec![
        row.role.to_string(),
        row.kind.clone(),
        how,
        row.turns.to_string(),
        figure(row.p50_us, 1),
        figure(row.p99_us, 1),
        figure(row.turns_per_second, 0),
    ]
}

fn rows_table(rows: &[OverheadRow]) -> Table {
    let header = ["role", "agent", "turns", "count", "p50 µs", "p99 µs", "turns/s"];
    table(&header, rows.iter().map(cells))
}

async fn rows(arguments: &OverheadArguments, settings: &Settings) -> anyhow::Result<Vec<OverheadRow>> {
    let scene = Scene::of(tasks::find(TASK)?).context("the task of these turns has no first step")?;
    let line = scene.line.clone();
    let stub = Stub::start(move |_| line.clone()).context("a server on this machine")?;
    let turns = Turns { count: arguments.turns, side_by_side: arguments.side_by_side };
    let resources = Resources::default();
    let mut rows = Vec::new();
    for (role, implementation, kind) in KINDS {
        let settings = with(settings, role, implementation, &stub, arguments.side_by_side);
        match AgentSet::from_settings(&settings, &resources) {
            Ok(agents) => {
                let worker = match role {
                    Role::Verifier => Worker::Verifier(agents.verifier()),
                    Role::Executor | Role::Coordinator => Worker::Executor(agents.executor()),
                };
                rows.extend(measure(&worker, kind, &scene, turns).await);
            }
            Err(error) => rows.push(OverheadRow::failed(role, kind, error.to_string())),
        }
    }
    Ok(rows)
}

pub fn overhead(arguments: &OverheadArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    start_log(&settings);
    let rows = actix::System::new().block_on(rows(arguments, &settings))?;
    let not_measured = |row: &OverheadRow| Some(format!("- {} {}: {}\n", row.role, row.kind, row.failure.as_ref()?));
    say(&match arguments.output {
        Output::Text => {
            rows.iter().filter_map(not_measured).fold(format!("{}\n", rows_table(&rows)), |text, line| text + &line)
        }
        Output::Json => serde_json::to_string_pretty(&rows)? + "\n",
    });
    Ok(ExitCode::SUCCESS)
}
