//! `runs reverify`: judges recorded runs again with another verifier.

mod source;
mod summary;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::list::Filters;
use super::{Common, run_id};
use crate::cli::Configuration;
use crate::cli::bench::with_engines;
use crate::cli::output::{Output, note, print};
use prime_agent_set::{AgentSet, Resources};
use prime_service::runs::{Rejudge, RejudgedRun, Rejudging};
use prime_settings::Settings;
use source::{Recorded, Source};
use summary::Summary;

#[derive(Args)]
pub struct ReverifyArguments {
    /// Run ids
    #[arg(value_name = "RUN", value_parser = run_id, required_unless_present = "all")]
    ids: Vec<String>,
    /// All finished runs, or those that the filters select
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// The verifier that judges: an implementation or a definition of the configuration
    #[arg(long, value_name = "NAME")]
    verifier: String,
    /// Read the journal of a stopped daemon (an SQLite file or a postgres:// URL) instead of asking
    /// a running one
    #[arg(long, value_name = "FILE|URL")]
    journal: Option<String>,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    common: Common,
}

/// The settings with this verifier, and no other agent that needs an engine.
fn with_verifier(configuration: &Configuration, name: &str) -> anyhow::Result<Settings> {
    let mut settings = configuration.load()?;
    let agents = &mut settings.agents;
    "reference".clone_into(&mut agents.executor.implementation);
    "threshold".clone_into(&mut agents.coordinator.implementation);
    agents.verifier.choose(name);
    agents.split.other.clear();
    settings.presets.clear();

    let known = settings.agent_names(prime_protocol::Role::Verifier);
    if !known.iter().any(|known| known == name) {
        bail!("--verifier {name}: there is no such verifier; known: {}", known.join(", "));
    }
    settings.validate()?;
    Ok(settings)
}

async fn judged_again(recorded: Recorded, with: &Rejudge<'_>) -> Result<RejudgedRun, String> {
    let Recorded { id, spec, mut events } = recorded;
    let mut rejudging = Rejudging::new(&id, &spec, with)?;
    while let Some((seq, event)) = events.next()? {
        rejudging.see(seq, &event).await?;
    }
    rejudging.finish()
}

async fn judge_all(
    arguments: &ReverifyArguments,
    source: &Source,
    settings: &Settings,
    resources: &Resources,
) -> anyhow::Result<Summary> {
    let agents = AgentSet::from_settings(settings, resources)?;
    let with = Rejudge { settings, resources, agents: &agents };
    let mut summary = Summary::default();

    let mut after = None;
    loop {
        let (ids, next) = if arguments.all {
            source.page(&arguments.filters, after.as_deref())?
        } else {
            (arguments.ids.iter().cloned().map(Ok).collect(), None)
        };

        for id in ids {
            // A run that cannot be judged must not hide the others.
            let (id, judged) = match id {
                Ok(id) => {
                    let judged = match source.recorded(&id) {
                        Ok(recorded) => judged_again(recorded, &with).await,
                        Err(reason) => Err(reason),
                    };
                    (id, judged)
                }
                Err((id, reason)) => (id, Err(reason)),
            };

            if arguments.common.output == Output::Json {
                let line = match &judged {
                    Ok(run) => serde_json::to_string(run)?,
                    Err(reason) => json!({"run": id, "error": reason}).to_string(),
                };
                print(line + "\n")?;
            }
            if let Err(reason) = &judged {
                note!("{id} is left out: {reason}");
            }
            summary.add(id, judged);
        }

        if next.is_none() || next == after {
            return Ok(summary);
        }
        after = next;
    }
}

pub fn reverify(arguments: &ReverifyArguments) -> anyhow::Result<ExitCode> {
    if !arguments.all && !arguments.filters.is_none() {
        bail!("--status, --task and --needs-review choose among all runs: give --all");
    }
    let settings = with_verifier(arguments.common.remote.configuration(), &arguments.verifier)?;
    let source = match &arguments.journal {
        Some(place) => Source::journal(place)?,
        None => Source::Daemon(Box::new(arguments.common.client()?)),
    };

    let summary = with_engines([&settings], None, async |resources| {
        // Runs of tasks of one's own are judged by their programs.
        resources.tasks.configure(&settings.tasks, &resources.programs);
        judge_all(arguments, &source, &settings, resources).await
    })?;

    match arguments.common.output {
        Output::Json => print(json!({"summary": summary.json()}).to_string() + "\n")?,
        Output::Text => print(summary.text())?,
    }
    Ok(ExitCode::SUCCESS)
}
