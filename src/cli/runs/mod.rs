//! `prime-agents runs`: the client of a running daemon, one file a command.

mod cancel;
mod chain;
mod client;
mod display;
mod fork;
mod gc;
mod list;
mod reconnect;
mod review;
mod show;
mod split;
mod submit;
mod trace;
mod watch;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::header::HeaderValue;

use super::remote::{KEY_VARIABLE, Remote, key};
use super::run::Output;
use client::{Client, ClientError};

/// Longest identifier that is sent on, in bytes.
const ID_BYTES_MAX: usize = 64;

#[derive(Args)]
pub struct RunsArguments {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Subcommand)]
enum RunsCommand {
    /// Hand in a run and print its id.
    Submit(Box<submit::SubmitArguments>),
    /// List runs, newest first.
    List(list::ListArguments),
    /// Show a run's record.
    Show(show::ShowArguments),
    /// Follow a run's events to its end, also over restarts of the daemon. Exit code 0: verified.
    Watch(watch::WatchArguments),
    /// Print a run's whole record as JSON Lines.
    Trace(trace::TraceArguments),
    /// End a run with what is committed.
    Cancel(cancel::CancelArguments),
    /// Begin a new run with the first events of another, and print its id.
    Fork(fork::ForkArguments),
    /// List a run's steps that ask for a person, with what was said of them.
    Reviews(review::ReviewsArguments),
    /// Say whether a step that asks for a person is right.
    Review(review::ReviewArguments),
    /// Compare the runs on both sides of agents.split.
    Split(split::SplitArguments),
    /// Remove finished runs from the daemon's journal.
    Gc(gc::GcArguments),
    /// Compute a run's hash chain from its trace and compare it with its record. Exit code 0: they agree.
    VerifyChain(chain::VerifyChainArguments),
}

/// What every command of a client has.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    remote: Remote,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl Common {
    fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(self.remote.base()?, authorization()?)?)
    }
}

/// The header with the key of the environment, if there is one.
fn authorization() -> anyhow::Result<Option<HeaderValue>> {
    let header = key()?.map(|key| HeaderValue::from_str(&format!("Bearer {key}")).map(sensitive));
    Ok(header.transpose()?)
}

fn sensitive(mut header: HeaderValue) -> HeaderValue {
    header.set_sensitive(true);
    header
}

/// An identifier as it may stand in a path. Whether there is such a run, the daemon says.
fn run_id(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("give the whole id of a run, as `runs submit` and `runs list` print it".to_owned())
    }
}

pub fn runs(arguments: &RunsArguments) -> anyhow::Result<ExitCode> {
    let result = match &arguments.command {
        RunsCommand::Submit(arguments) => submit::submit(arguments),
        RunsCommand::List(arguments) => list::list(arguments),
        RunsCommand::Show(arguments) => show::show(arguments),
        RunsCommand::Watch(arguments) => watch::watch(arguments),
        RunsCommand::Trace(arguments) => trace::trace(arguments),
        RunsCommand::Cancel(arguments) => cancel::cancel(arguments),
        RunsCommand::Fork(arguments) => fork::fork(arguments),
        RunsCommand::Reviews(arguments) => review::reviews(arguments),
        RunsCommand::Review(arguments) => review::review(arguments),
        RunsCommand::Split(arguments) => split::split(arguments),
        RunsCommand::Gc(arguments) => gc::gc(arguments),
        RunsCommand::VerifyChain(arguments) => chain::verify_chain(arguments),
    };
    match result {
        // What the daemon said, or that it did not: no mistake of usage.
        Err(error) if error.is::<ClientError>() => {
            eprintln!("error: {error:#}");
            Ok(ExitCode::FAILURE)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_stay_within_their_part_of_the_path() {
        for id in ["run_019a0b1c2d3e4f5061728394a5b", "x", "a-b"] {
            assert_eq!(run_id(id).as_deref(), Ok(id));
        }
        for id in ["", "..", "run_1/events", "a b", "run_1?x", "é", "a%2Fb", &"x".repeat(65)] {
            assert!(run_id(id).unwrap_err().contains("whole id"), "{id}");
        }
    }
}
