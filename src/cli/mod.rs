//! The command line: one file a subcommand. Parses, loads the configuration, and hands over.

mod agents;
mod bench;
mod completions;
mod config;
mod doctor;
mod health;
mod key;
mod loadtest;
mod log;
mod man;
mod notify;
mod reload;
mod remote;
mod run;
mod runs;
mod serve;
mod train;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::settings::{Settings, SettingsError};
use log::start_log;

/// LLM agents solve algorithmic problems step by step, and every step is checked.
#[derive(Parser)]
#[command(name = "prime-agents", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Solve one instance of a task and show how.
    Run(run::RunArguments),
    /// Hand runs in to a daemon, watch, list, cancel and study them. The key is read from PRIME_API_KEY.
    Runs(runs::RunsArguments),
    /// Run as a daemon with an HTTP interface.
    Serve(serve::ServeArguments),
    /// Measure what coordination costs, without a model.
    Loadtest(loadtest::LoadtestArguments),
    /// Measure the configured agents on held-out instances.
    Bench(bench::BenchArguments),
    /// Say what was found on this machine, and what to do about what is missing.
    Doctor(doctor::DoctorArguments),
    /// The agents that the configuration can name: list, show, check, try.
    Agents(agents::AgentsArguments),
    /// Show, check or describe the configuration.
    Config(config::ConfigArguments),
    /// Make keys for clients of the daemon.
    Key(key::KeyArguments),
    /// Ask a daemon whether it lives. Exit code 0: it does.
    Health(health::HealthArguments),
    /// Print a script that completes this command line in a shell.
    Completions(completions::CompletionsArguments),
    /// Print the manual, or write the pages of all commands into a folder.
    Man(man::ManArguments),
    /// Train a model for an agent.
    Train(train::TrainArguments),
}

/// Where the configuration comes from, for every command that needs one.
#[derive(Args, Clone, Debug)]
struct Configuration {
    /// A TOML file over the defaults; later ones win.
    #[arg(long = "config", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One key over files and environment, as `run.fanout=4`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Configuration {
    fn load(&self) -> Result<Settings, SettingsError> {
        let environment =
            std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
        Settings::load(&self.files, environment, &self.sets)
    }
}

/// Exit code for mistakes of usage and configuration; clap uses the same.
const USAGE: u8 = 2;

/// The hidden command that makes this process an engine's worker.
const ENGINE_WORKER: &str = "engine-worker";

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|command| command == ENGINE_WORKER) {
        return prime_engine::worker_main();
    }
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are printed this way too, and are no failure. A closed pipe is none either.
            let code = if error.use_stderr() { USAGE } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Runs(arguments) => runs::runs(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Loadtest(arguments) => loadtest::loadtest(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Agents(arguments) => agents::agents(&arguments),
        Command::Config(arguments) => config::config(&arguments),
        Command::Key(arguments) => key::key(&arguments),
        Command::Health(arguments) => health::health(&arguments),
        Command::Completions(arguments) => Ok(completions::completions(&arguments, Arguments::command())),
        Command::Man(arguments) => man::man(&arguments, Arguments::command()),
        Command::Train(arguments) => train::train(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(USAGE)
    })
}
