//! The command line: one file for each subcommand. Parses arguments and loads the configuration;
//! the work is done below.

mod agents;
mod attest;
mod bench;
mod cluster;
mod completions;
mod config;
mod data;
mod doctor;
mod health;
mod interrupt;
mod journal;
mod key;
mod loadtest;
mod log;
mod man;
mod mcp;
mod model;
mod notify;
mod output;
mod own_model;
mod own_tasks;
mod problem;
mod progress;
mod reload;
mod remote;
mod run;
mod runs;
mod schedules;
mod serve;
mod study;
mod table;
mod tasks;
mod train;
mod trajectories;
mod values;
mod webhooks;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};

use log::start_log;
use output::{OUTPUT_FAILED, OutputError, note, written};
use prime_settings::{Settings, SettingsError, read_environment};

/// LLM agents that solve algorithmic problems step by step, with every step checked
#[derive(Parser)]
#[command(name = "prime-agents", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Solve one instance of a task
    Run(run::RunArguments),
    /// Submit runs to a daemon, and watch, list, cancel and inspect them
    Runs(runs::RunsArguments),
    /// Run the daemon, which serves an HTTP API
    Serve(serve::ServeArguments),
    /// Serve the tasks, their verifier and runs as tools of the Model Context Protocol, over
    /// standard input and output
    Mcp(mcp::McpArguments),
    /// Measure the cost of coordination
    Loadtest(loadtest::LoadtestArguments),
    /// Generate and judge benchmark instances, and measure agents on them
    Bench(bench::BenchArguments),
    /// Make data to train models elsewhere: steps, preference pairs, prompts
    Data(data::DataArguments),
    /// Run studies that a file describes, and make their tables, figures and page
    Study(study::StudyArguments),
    /// Check this machine: processor, devices, models, memory, servers, port
    Doctor(doctor::DoctorArguments),
    /// List, show, check and try the configurable agents
    Agents(agents::AgentsArguments),
    /// Show what a model's file holds, and how its chat template renders messages
    Model(model::ModelArguments),
    /// Upload tasks of your own to a daemon, and list and delete them
    Tasks(tasks::TasksArguments),
    /// List what a daemon starts at times of the clock, and start it now
    Schedules(schedules::SchedulesArguments),
    /// Show the messages that a daemon holds for webhooks, and send them again
    Webhooks(webhooks::WebhooksArguments),
    /// Check a problem of your own, and judge lines by it
    Problem(problem::ProblemArguments),
    /// Show, check or describe the configuration
    Config(config::ConfigArguments),
    /// Show the daemons that share one journal
    Cluster(cluster::ClusterArguments),
    /// Move journals between stores
    Journal(journal::JournalArguments),
    /// Check signed statements about runs without their daemon, and make keys that sign them
    Attest(attest::AttestArguments),
    /// Create API keys for clients of the daemon
    Key(key::KeyArguments),
    /// Check whether a daemon is alive
    Health(health::HealthArguments),
    /// Generate a completion script for a shell
    Completions(completions::CompletionsArguments),
    /// Print the manual page, or write the pages of all commands
    Man(man::ManArguments),
    /// Train a model for an agent (runs prime-train)
    Train(train::TrainArguments),
}

/// Where the configuration comes from.
#[derive(Args, Clone, Debug, Default)]
struct Configuration {
    /// Configuration file (TOML) over the defaults; repeatable, the last one wins
    #[arg(long = "config", value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Set one option over files and environment, such as run.fanout=4; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Configuration {
    fn load(&self) -> Result<Settings, SettingsError> {
        Settings::load(&self.files, read_environment(std::env::vars_os())?, &self.sets)
    }
}

/// Exit code for wrong arguments or configuration, as clap's.
const USAGE: u8 = 2;

/// The hidden command of an engine's worker process.
const ENGINE_WORKER: &str = "engine-worker";

/// Runs the command of the process's arguments.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Not a command of clap's, which would show it in the help and in completions.
    if arguments.get(1).is_some_and(|command| command == ENGINE_WORKER) {
        return prime_engine::worker_main();
    }

    let command = man::with_examples(Arguments::command(), "prime-agents");
    let command = with_negative_numbers(command);
    let parsed = command.try_get_matches_from(arguments);
    let arguments = match parsed.and_then(|found| Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };

    // Parts of the program, and of its libraries, cannot calculate with such times.
    if let Err(reason) = prime_daemon::check_clock() {
        return failed(&anyhow::Error::msg(reason));
    }

    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Runs(arguments) => runs::runs(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Loadtest(arguments) => loadtest::loadtest(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Data(arguments) => data::data(&arguments),
        Command::Study(arguments) => study::study(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Agents(arguments) => agents::agents(&arguments),
        Command::Model(arguments) => model::model(&arguments),
        Command::Tasks(arguments) => tasks::tasks(&arguments),
        Command::Schedules(arguments) => schedules::schedules(&arguments),
        Command::Webhooks(arguments) => webhooks::webhooks(&arguments),
        Command::Problem(arguments) => problem::problem(&arguments),
        Command::Config(arguments) => config::config(&arguments),
        Command::Cluster(arguments) => cluster::cluster(&arguments),
        Command::Journal(arguments) => journal::journal(&arguments),
        Command::Attest(arguments) => attest::attest(&arguments),
        Command::Key(arguments) => key::key(&arguments),
        Command::Health(arguments) => health::health(&arguments),
        Command::Completions(arguments) => {
            completions::completions(&arguments, Arguments::command())
        }
        Command::Man(arguments) => man::man(&arguments, Arguments::command()),
        Command::Train(arguments) => train::train(&arguments),
    };

    result.unwrap_or_else(|error| failed(&error))
}

/// Reports why a command failed.
fn failed(error: &anyhow::Error) -> ExitCode {
    note!("error: {error:#}");
    ExitCode::from(if error.chain().any(|cause| cause.is::<OutputError>()) {
        OUTPUT_FAILED
    } else {
        USAGE
    })
}

/// Takes `-1` for a value, which is then refused as such, and not for an unknown option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let is_value = |argument: &clap::Arg| argument.get_action().takes_values();
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = command.mut_args(|argument| {
        let may_be_negative = is_value(&argument) && !argument.is_positional();
        if may_be_negative { argument.allow_negative_numbers(true) } else { argument }
    });
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, with_negative_numbers))
}

/// Prints an error of clap's, which may also be help or the version.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let in_words = prime_daemon::numbers_in_words(&text);
    if in_words != text {
        note!("{}", in_words.trim_end());
        return ExitCode::from(USAGE);
    }

    let printed = error.print().and_then(|()| output::stdout().flush());
    match (error.use_stderr(), written(printed)) {
        (true, _) => ExitCode::from(USAGE),
        (false, Err(error)) => failed(&error.into()),
        (false, Ok(())) => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod paper_tests;
