//! `prime-agents loadtest`: what coordination costs.

mod arguments;
mod output;
mod target;
mod values;

use std::process::ExitCode;

use serde_json::json;

use super::remote::key;
use super::start_log;
use crate::agents::Names;
use crate::app::runtime_plan;
use crate::loadtest::http::{HttpLoad, http};
use crate::loadtest::plan::Plan;
use crate::loadtest::report::{Point, Report, RuntimeFacts};
use crate::loadtest::{Circumstances, DurableLoad, EngineLoad, ModelLoad, report, ring};
use crate::settings::{LogLevel, Settings};

pub use arguments::LoadtestArguments;
use arguments::ModeName;

/// What one mode measured.
struct Found {
    /// Where they are not in another process.
    agents: Option<Names>,
    points: Vec<Point>,
    remarks: Vec<String>,
}

impl Found {
    fn by(agents: Names) -> Self {
        Self { agents: Some(agents), points: Vec::new(), remarks: Vec::new() }
    }
}

async fn measure(arguments: &LoadtestArguments, plan: &Plan, settings: &Settings) -> anyhow::Result<Found> {
    let runtime = runtime_plan(settings);
    let counts = arguments.counts();
    let most = counts.iter().copied().max().unwrap_or(1);
    match arguments.mode {
        ModeName::Ring if arguments.durable => {
            let load = DurableLoad::start(settings.clone(), plan, arguments.journal.as_deref(), most)?;
            let mut found = Found::by(ring::names());
            found.remarks.extend(load.remark());
            for trajectories in counts {
                found.points.push(load.measure(plan, trajectories).await?);
            }
            Ok(found)
        }
        ModeName::Ring => {
            let mut found = Found::by(ring::names());
            for trajectories in counts {
                found.points.push(ring::measure(plan, trajectories, &runtime).await?);
            }
            Ok(found)
        }
        ModeName::Engine => {
            let load = EngineLoad::start()?;
            let mut found = Found::by(EngineLoad::names());
            for trajectories in counts {
                found.points.push(load.measure(plan, trajectories, &runtime).await?);
            }
            Ok(found)
        }
        ModeName::Model => {
            let (task, difficulty) = arguments.task()?;
            let load = ModelLoad::start(settings.clone(), task, difficulty, most)?;
            let mut found = Found::by(load.names());
            for trajectories in counts {
                let (point, remark) = load.measure(plan, trajectories).await?;
                found.points.push(point);
                found.remarks.push(remark);
            }
            Ok(found)
        }
        ModeName::Http => {
            let (task, difficulty) = arguments.task()?;
            let mut found = Found { agents: None, points: Vec::new(), remarks: Vec::new() };
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
                let measured = http(&load).await?;
                found.points.push(measured.point);
                found.remarks.extend(measured.remarks);
            }
            Ok(found)
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
        // A line a run would be a part of what is measured.
        settings.log.level = LogLevel::Warn;
    }
    start_log(&settings);
    let circumstances = Circumstances::now(jiff::Timestamp::now());
    let found = actix::System::new().block_on(measure(arguments, &plan, &settings))?;
    let load = plan.load(arguments.durable);
    let runtime = found.agents.map(|agents| facts(&settings, agents));
    let mut report: Report = report(circumstances, arguments.mode.mode(), load, runtime, found.points);
    report.remarks.extend(found.remarks);
    outputs.write(&report)
}
