//! The command line: one file a subcommand. Parses, loads the configuration, and hands over.

mod bench;
mod config;
mod doctor;
mod key;
mod loadtest;
mod run;
mod serve;
#[cfg(feature = "train")]
mod train;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, LogLevel, Settings, SettingsError};

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
    /// Run as a daemon with an HTTP interface.
    Serve(serve::ServeArguments),
    /// Measure what coordination costs, without a model.
    Loadtest(loadtest::LoadtestArguments),
    /// Measure the configured agents on held-out instances.
    Bench(bench::BenchArguments),
    /// Say what was found on this machine, and what to do about what is missing.
    Doctor(doctor::DoctorArguments),
    /// Show, check or describe the configuration.
    Config(config::ConfigArguments),
    /// Make keys for clients of the daemon.
    Key(key::KeyArguments),
    /// Train a model for an agent.
    #[cfg(feature = "train")]
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
        return crate::engine::worker_main();
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
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Loadtest(arguments) => loadtest::loadtest(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Config(arguments) => config::config(&arguments),
        Command::Key(arguments) => key::key(&arguments),
        #[cfg(feature = "train")]
        Command::Train(arguments) => train::train(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(USAGE)
    })
}

/// Sends log lines to standard error, as the configuration says.
fn start_log(settings: &Settings) {
    let level = match settings.log.level {
        LogLevel::Off => "off",
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second start in one process (tests) keeps the first.
    drop(match settings.log.format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    });
}
