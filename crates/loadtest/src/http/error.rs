//! Errors of a load on a daemon.

use std::time::Duration;

/// The errors that end the test. Temporary refusals do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpLoadError {
    #[error("--url {url}: give http://HOST:PORT, as printed by the daemon at start")]
    Url { url: String },
    #[error("the key has characters other than visible ASCII: correct PRIME_API_KEY")]
    Key,
    #[error("the load has {what}: give {give}")]
    Load { what: String, give: &'static str },
    #[error(
        "no daemon answers on {url}: {reason}: start one with `prime-agents serve`, or give its \
         address with --url"
    )]
    Unreachable { url: String, reason: String },
    #[error("{url} answered with status {status}, but is not a prime-agents daemon: check --url")]
    Foreign { url: String, status: u16 },
    #[error(
        "{url} does not accept the key: {message}: set PRIME_API_KEY to one of its server.keys"
    )]
    Unauthorized { url: String, message: String },
    /// The refusal is permanent.
    #[error("the daemon refused a run of the load with status {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the daemon accepted no run for {} s: {message}", patience.as_secs())]
    NeverAccepted { patience: Duration, message: String },
    #[error(
        "the response broke off: {reason}: the daemon was stopped or is overloaded, see its log"
    )]
    BrokenOff { reason: String },
    #[error(
        "the response cannot be read by this version: {reason}: use the load test of the daemon's \
         version"
    )]
    Unreadable { reason: String },
    #[error(
        "{connections} connections exceed this process's limit of {limit} file descriptors: raise \
         it (`ulimit -n`), here and for the daemon, or give fewer trajectories"
    )]
    Descriptors { connections: u32, limit: u64 },
    #[error(
        "{runs} consecutive runs of a client ended without a step, the last as `{status}`: look at \
         one of them (`prime-agents runs list`), or give --duration instead of --steps"
    )]
    Stepless { runs: u32, status: String },
    #[error("no run ended during the measurement: give a longer --duration, or a smaller problem")]
    NothingEnded,
}
