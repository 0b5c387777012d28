//! `prime-agents loadtest`: what coordination costs, without a model.

#[cfg_attr(not(test), expect(dead_code, reason = "taken up with the modes of the command"))]
mod output;
mod target;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use comfy_table::{Cell, CellAlignment, Table, presets};

use super::run::Output;
use super::{Configuration, start_log};
use crate::app::runtime_plan;
use crate::loadtest::ring::{LoadReport, RingLoad, ring};

#[derive(Args)]
pub struct LoadtestArguments {
    /// Trajectories that go round at the same time.
    #[arg(long, default_value_t = 1000, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    trajectories: u32,
    /// Steps of each trajectory.
    #[arg(long, default_value_t = 1000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000_000))]
    steps: u64,
    #[command(flatten)]
    configuration: Configuration,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn table(report: &LoadReport) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["trajectories", "steps/s", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"]);
    let us = &report.step_us;
    let figures = [us.p50, us.p90, us.p99, us.p999, us.max];
    let mut row = vec![Cell::new(report.trajectories), Cell::new(format!("{:.0}", report.steps_per_second))];
    row.extend(figures.iter().map(|figure| Cell::new(format!("{figure:.2}"))));
    table.add_row(row.into_iter().map(|cell| cell.set_alignment(CellAlignment::Right)));
    format!(
        "{table}\n{} cells, placement {}, {} steps a trajectory, {:.2} s; latency is from one decision of a trajectory \
         to its next\n",
        report.cells, report.placement, report.steps, report.seconds
    )
}

pub fn loadtest(arguments: &LoadtestArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    start_log(&settings);
    let load = RingLoad { trajectories: arguments.trajectories, steps: arguments.steps };
    let plan = runtime_plan(&settings);
    let report = actix::System::new().block_on(ring(load, &plan)).map_err(anyhow::Error::msg)?;
    let text = match arguments.output {
        Output::Text => table(&report),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
