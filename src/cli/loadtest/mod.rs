//! `prime-agents loadtest`: measures what coordination costs.

mod arguments;
mod output;
mod target;
mod values;

use std::process::ExitCode;

use futures::TryFutureExt as _;
use serde_json::json;

use super::progress::Session;
use super::remote::key;
use super::start_log;
use crate::loads::plan::Plan;
use crate::loads::{DurableLoad, EngineLoad, ModelLoad, ring};
use prime_agent_set::Names;
use prime_loadtest::http::{HttpLoad, http};
use prime_loadtest::report::{Point, RuntimeFacts};
use prime_loadtest::{TestStart, report};
use prime_service::app::runtime_plan;
use prime_settings::{LogLevel, Settings};

pub use arguments::LoadtestArguments;
use arguments::ModeName;

/// The results of one mode.
struct Results {
    /// `None` if they are in another process.
    agents: Option<Names>,
    points: Vec<Point>,
    remarks: Vec<String>,
}

impl Results {
    fn of(agents: Names) -> Self {
        Self { agents: Some(agents), points: Vec::new(), remarks: Vec::new() }
    }
}

async fn measure(
    arguments: &LoadtestArguments,
    plan: &Plan,
    settings: &Settings,
    session: &mut Session,
) -> anyhow::Result<Results> {
    let runtime = runtime_plan(settings);
    let counts = arguments.counts();
    let most = counts.iter().copied().max().unwrap_or(1);

    match arguments.mode {
        ModeName::Ring if arguments.durable => {
            let load =
                DurableLoad::start(settings.clone(), plan, arguments.journal.as_deref(), most)?;
            let mut results = Results::of(ring::names());
            results.remarks.extend(load.remark());
            for trajectories in counts {
                let measured = Box::pin(load.measure(plan, trajectories).err_into());
                let Some(point) = session.next(measured).await? else { break };
                results.points.push(point);
            }
            Ok(results)
        }
        ModeName::Ring => {
            let mut results = Results::of(ring::names());
            for trajectories in counts {
                let measured = ring::measure(plan, trajectories, &runtime).err_into();
                let Some(point) = session.next(measured).await? else { break };
                results.points.push(point);
            }
            Ok(results)
        }
        ModeName::Engine => {
            let load = EngineLoad::start()?;
            let mut results = Results::of(EngineLoad::names());
            for trajectories in counts {
                let measured = load.measure(plan, trajectories, &runtime).err_into();
                let Some(point) = session.next(measured).await? else { break };
                results.points.push(point);
            }
            Ok(results)
        }
        ModeName::Model => {
            let (task, difficulty) = arguments.task()?;
            let load = ModelLoad::start(settings.clone(), task, difficulty, most)?;
            let mut results = Results::of(load.names());
            for trajectories in counts {
                let measured = load.measure(plan, trajectories).err_into();
                let Some((point, remark)) = session.next(measured).await? else { break };
                results.points.push(point);
                results.remarks.push(remark);
            }
            Ok(results)
        }
        ModeName::Http => {
            let (task, difficulty) = arguments.task()?;
            let mut results = Results { agents: None, points: Vec::new(), remarks: Vec::new() };
            for trajectories in counts {
                let load = HttpLoad {
                    url: arguments.url.clone().unwrap_or_default(),
                    key: key()?,
                    request: json!({ "task": task.spec().slug, "difficulty": difficulty.name() }),
                    trajectories,
                    rate: plan.rate,
                    warmup: plan.warmup,
                    length: plan.length,
                };
                let Some(measured) = session.next(http(&load).err_into()).await? else { break };
                results.points.push(measured.point);
                results.remarks.extend(measured.remarks);
            }
            Ok(results)
        }
    }
}

fn facts(settings: &Settings, agents: Names) -> RuntimeFacts {
    let plan = runtime_plan(settings);
    RuntimeFacts {
        cells: plan.cells.max(1),
        placement: format!("{:?}", plan.placement).to_lowercase(),
        executor: agents.executor,
        verifier: agents.verifier,
        coordinator: agents.coordinator,
    }
}

pub fn loadtest(arguments: &LoadtestArguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.plan()?;
    let outputs = arguments.outputs.check(arguments.mode.mode(), &arguments.counts())?;
    let mut settings = arguments.configuration.load()?;

    if settings.log.level == LogLevel::Info {
        // A log line per run would distort the measurement.
        settings.log.level = LogLevel::Warn;
    }
    start_log(&settings);

    let start = TestStart::new(jiff::Timestamp::now());
    let (results, finished) = actix::System::new().block_on(async {
        let mut session = Session::start(arguments.counts().len(), "point")?;
        let results = Box::pin(measure(arguments, &plan, &settings, &mut session)).await?;
        anyhow::Ok((results, session.finish()))
    })?;

    // Ctrl-C came before the first point was measured.
    if results.points.is_empty() {
        return Ok(finished.exit_code());
    }

    let load = plan.load(arguments.durable);
    let runtime = results.agents.map(|agents| facts(&settings, agents));
    let mut report = report(start, arguments.mode.mode(), load, runtime, results.points);
    report.remarks.extend(results.remarks);
    report.remarks.extend(finished.note().map(str::to_owned));

    let written = outputs.write(&report)?;
    Ok(if finished.note().is_some() { finished.exit_code() } else { written })
}
