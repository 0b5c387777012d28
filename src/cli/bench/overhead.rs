//! `bench overhead`: the cost of an agent's turn without a model.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::cli::output::{Output, print};
use crate::cli::progress::{Finished, Session};
use crate::cli::table::Table;
use crate::cli::{Configuration, start_log};
use crate::evaluation::turn_overhead::{OverheadRow, Scene, Turns, Worker, turn_overhead};
use prime_agent_set::{AgentSet, Agents, Resources};
use prime_bench::tasks;
use prime_protocol::Role;
use prime_settings::{Settings, Upstream, UpstreamPool};
use prime_stub_server::StubServer;

/// The task of the turns, which the example programs know.
const TASK: &str = "tower-of-hanoi";
/// The pool of the in-process server.
const POOL: &str = "overhead-stub";

#[derive(Args)]
pub struct OverheadArguments {
    /// Turns per kind of agent, sequential and then concurrent
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000)
    )]
    turns: u32,
    /// Turns in flight in the concurrent measurement
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000)
    )]
    side_by_side: u32,
    #[command(flatten)]
    configuration: Configuration,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The kinds of agents: role, implementation, and name in the table.
const KINDS: [(Role, &str, &str); 6] = [
    (Role::Executor, "scripted", "scripted, in process"),
    (Role::Executor, "process", "process, over pipes"),
    (Role::Executor, "openai", "openai, a local server"),
    (Role::Verifier, "rules", "rules, in process"),
    (Role::Verifier, "process", "process, over pipes"),
    (Role::Verifier, "ensemble", "ensemble of three, in process"),
];

/// The settings with this agent, and no other agent that needs anything. A configured program is
/// measured in place of the example.
fn with(
    settings: &Settings,
    role: Role,
    implementation: &str,
    stub: &StubServer,
    side_by_side: u32,
) -> Settings {
    let mut settings = settings.clone();

    let example = |role: Role| {
        ["python3", "-B", &format!("agents/examples/{role}.py")].map(str::to_owned).to_vec()
    };

    let agents = &mut settings.agents;
    let mut names = ["reference", "rules"];
    names[usize::from(role == Role::Verifier)] = implementation;
    names[0].clone_into(&mut agents.executor.implementation);
    agents.verifier.choose(names[1]);
    "threshold".clone_into(&mut agents.coordinator.implementation);

    for (role, program) in [
        (Role::Executor, &mut agents.executor.program),
        (Role::Verifier, &mut agents.verifier.program),
    ] {
        if program.command.is_empty() {
            program.command = example(role);
        }
    }

    agents.verifier.ensemble.members = ["rules", "strict", "none"].map(str::to_owned).to_vec();
    POOL.clone_into(&mut agents.executor.pool);
    // All executors get the same prompt.
    "compact".clone_into(&mut agents.executor.prompt);

    let upstream = Upstream {
        url: stub.url.clone(),
        model: "none".to_owned(),
        api_key_env: None,
        concurrent_max: side_by_side,
        weight: 1.0,
    };

    settings.pools.insert(
        POOL.to_owned(),
        UpstreamPool { upstreams: vec![upstream], ..UpstreamPool::default() },
    );
    settings
}

fn cells(row: &OverheadRow) -> [String; 7] {
    let figure = |given: Option<f64>, digits: usize| {
        given.map_or("-".to_owned(), |given| format!("{given:.digits$}"))
    };
    let how = match (row.turns, row.side_by_side) {
        (0, _) => "-".to_owned(),
        (_, 1) => "sequential".to_owned(),
        (_, in_flight) => format!("{in_flight} in flight"),
    };
    [
        row.role.to_string(),
        row.kind.clone(),
        how,
        row.turns.to_string(),
        figure(row.p50_us, 1),
        figure(row.p99_us, 1),
        figure(row.turns_per_second, 0),
    ]
}

fn table(rows: &[OverheadRow]) -> Table {
    let header = ["role", "agent", "turns", "count", "p50 µs", "p99 µs", "turns/s"];
    Table::new(header, rows.iter().map(cells))
}

async fn rows(
    arguments: &OverheadArguments,
    settings: &Settings,
) -> anyhow::Result<(Vec<OverheadRow>, Finished)> {
    let scene = Scene::of(tasks::find(TASK)?).context("the trace of the measured task is empty")?;
    let line = scene.line.clone();
    let stub = StubServer::start(move |_| line.clone()).context("the local server cannot start")?;
    let turns = Turns { count: arguments.turns, side_by_side: arguments.side_by_side };

    let resources = Resources::default();
    let mut session = Session::start(KINDS.len(), "agent")?;
    let mut rows = Vec::new();
    for (role, implementation, kind) in KINDS {
        let settings = with(settings, role, implementation, &stub, arguments.side_by_side);
        match AgentSet::from_settings(&settings, &resources) {
            Ok(agents) => {
                let worker = match role {
                    Role::Verifier => Worker::Verifier(agents.verifier()),
                    Role::Executor | Role::Coordinator => Worker::Executor(agents.executor()),
                };
                let measured = async { Ok(turn_overhead(&worker, kind, &scene, turns).await) };
                rows.extend(session.next(measured).await?.into_iter().flatten());
            }
            Err(error) => rows.push(OverheadRow::failed(role, kind, error.to_string())),
        }
    }
    Ok((rows, session.finish()))
}

pub fn overhead(arguments: &OverheadArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    start_log(&settings);
    let (rows, finished) = actix::System::new().block_on(rows(arguments, &settings))?;
    let not_measured = |row: &OverheadRow| {
        Some(format!("- {} {}: {}\n", row.role, row.kind, row.failure.as_ref()?))
    };

    match arguments.output {
        Output::Text => {
            print(
                rows.iter()
                    .filter_map(not_measured)
                    .fold(table(&rows).to_string(), |text, line| text + &line),
            )?;
        }
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
    }

    Ok(finished.exit_code())
}
