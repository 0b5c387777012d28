//! `prime-agents runs`: the client of a running daemon. One file for each subcommand.

mod approvals;
mod attest;
mod budget_options;
mod cancel;
mod chain;
mod chosen;
mod client;
mod display;
mod export;
mod fork;
mod gc;
mod import;
mod label;
mod list;
mod overview;
mod pairs;
mod reconnect;
mod retry;
mod reverify;
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
use crate::cli::output::{Output, note};
pub use chain::chain;
pub use client::{Client, ClientError, Post, known};
pub use show::print as print_record;
pub use submit::print_accepted;

/// Longest run id, in bytes.
const ID_BYTES_MAX: usize = 64;

#[derive(Args)]
pub struct RunsArguments {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Subcommand)]
enum RunsCommand {
    /// Submit a run and print its id
    Submit(Box<submit::SubmitArguments>),
    /// List runs, newest first
    List(Box<list::ListArguments>),
    /// Show the record of a run
    Show(show::ShowArguments),
    /// Follow the events of a run until it ends, across restarts of the daemon; exit code 0 if
    /// verified
    Watch(watch::WatchArguments),
    /// Print the trace of a run as JSON Lines
    Trace(trace::TraceArguments),
    /// End a run with its committed steps
    Cancel(cancel::CancelArguments),
    /// Give a run labels, by which it is found
    Label(label::LabelArguments),
    /// Start a new run from the first events of another and print its id
    Fork(fork::ForkArguments),
    /// Try a run again without what was rejected in it, and print the new run's id
    Retry(retry::RetryArguments),
    /// Write a run that is over as a bundle, as OpenTelemetry spans, or as a row of a data set
    Export(export::ExportArguments),
    /// Add a run that another daemon has exported as a bundle, and print its id
    Import(import::ImportArguments),
    /// Print a signed statement about a run that is over
    Attest(attest::AttestArguments),
    /// List the steps of a run that need review, with their reviews
    Reviews(review::ReviewsArguments),
    /// Accept or reject a step that needs review
    Review(review::ReviewArguments),
    /// Say who is to review a step that needs review
    Assign(review::AssignArguments),
    /// Write what reviewers rejected, with better lines, as preference pairs for training
    Pairs(pairs::PairsArguments),
    /// List the steps that wait for approval, of all runs or of one
    Approvals(approvals::ApprovalsArguments),
    /// Commit a step that waits for approval
    Approve(approvals::ApproveArguments),
    /// Refuse a step that waits for approval: the executor proposes another
    Reject(approvals::RejectArguments),
    /// Put a line of your own in the place of one that waits for approval
    Edit(approvals::EditArguments),
    /// Add up runs by task, model and day, and say which constraints refused most lines
    Overview(overview::OverviewArguments),
    /// Compare the runs on both sides of agents.split
    Split(split::SplitArguments),
    /// Remove finished runs from the daemon's journal
    Gc(gc::GcArguments),
    /// Judge the recorded steps of finished runs again with another verifier, without asking an
    /// executor: which verdicts, decisions and answers would change
    Reverify(reverify::ReverifyArguments),
    /// Verify the hash chain of a run against its record; exit code 0 if they agree
    VerifyChain(chain::VerifyChainArguments),
}

/// The options of every client command.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    remote: Remote,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl Common {
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(self.remote.bases()?, authorization()?)?)
    }

    pub fn output(&self) -> Output {
        self.output
    }
}

/// The header with the API key, if one is set.
///
/// # Errors
/// When the key has characters that no key can have.
pub fn authorization() -> anyhow::Result<Option<HeaderValue>> {
    let header = key()?.map(|key| HeaderValue::from_str(&format!("Bearer {key}")).map(sensitive));
    Ok(header.transpose()?)
}

fn sensitive(mut header: HeaderValue) -> HeaderValue {
    header.set_sensitive(true);
    header
}

/// Checks that an id is safe within a path; that the run exists is checked by the daemon.
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
        RunsCommand::Label(arguments) => label::label(arguments),
        RunsCommand::Fork(arguments) => fork::fork(arguments),
        RunsCommand::Retry(arguments) => retry::retry(arguments),
        RunsCommand::Export(arguments) => export::export(arguments),
        RunsCommand::Import(arguments) => import::import(arguments),
        RunsCommand::Attest(arguments) => attest::attest(arguments),
        RunsCommand::Reviews(arguments) => review::reviews(arguments),
        RunsCommand::Review(arguments) => review::review(arguments),
        RunsCommand::Assign(arguments) => review::assign(arguments),
        RunsCommand::Pairs(arguments) => pairs::pairs(arguments),
        RunsCommand::Approvals(arguments) => approvals::approvals(arguments),
        RunsCommand::Approve(arguments) => approvals::approve(arguments),
        RunsCommand::Reject(arguments) => approvals::reject(arguments),
        RunsCommand::Edit(arguments) => approvals::edit(arguments),
        RunsCommand::Overview(arguments) => overview::overview(arguments),
        RunsCommand::Split(arguments) => split::split(arguments),
        RunsCommand::Gc(arguments) => gc::gc(arguments),
        RunsCommand::Reverify(arguments) => reverify::reverify(arguments),
        RunsCommand::VerifyChain(arguments) => chain::verify_chain(arguments),
    };
    as_refusal(result)
}

/// Reports a daemon that refuses or does not answer here, with exit code 1: other errors end the
/// command as errors of usage.
pub fn as_refusal(result: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if error.is::<ClientError>() => {
            note!("error: {error:#}");
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
