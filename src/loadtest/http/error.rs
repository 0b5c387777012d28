//! Why a load on a daemon came to nothing.

use std::time::Duration;

/// What ends the test. Refusals that pass do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpLoadError {
    #[error("--url {url}: give http://HOST:PORT, as the daemon printed it when it was ready")]
    Url { url: String },
    #[error("the key cannot be sent: a key has visible ASCII characters only; set PRIME_API_KEY again")]
    Key,
    #[error("the load has {what}: give {give}")]
    Load { what: String, give: &'static str },
    #[error(
        "no daemon answers on {url}: {reason}: start one there with `prime-agents serve`, or say with --url where it is"
    )]
    Silent { url: String, reason: String },
    #[error("{url} answered with status {status}, but not as a daemon of prime-agents does: is --url right?")]
    Foreign { url: String, status: u16 },
    #[error("{url} wants another key: {message}: set PRIME_API_KEY to one of its server.keys")]
    Unauthorized { url: String, message: String },
    /// Another time would not help.
    #[error("the daemon refused a run of the load with status {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the daemon took no run for {} s, and said: {message}", patience.as_secs())]
    NeverTaken { patience: Duration, message: String },
    #[error("the answer broke off: {reason}: the daemon was stopped, or it is overloaded; its log says more")]
    BrokenOff { reason: String },
    #[error("the answer cannot be read by this version: {reason}: take the load test of the daemon's version")]
    Unreadable { reason: String },
    #[error(
        "{connections} connections need more file descriptors than the {limit} that this process may have: raise the \
         limit (`ulimit -n`), here and for the daemon, or give fewer trajectories"
    )]
    Descriptors { connections: u32, limit: u64 },
    #[error(
        "{runs} runs of a client in a row ended without a step, the last as `{status}`: look at one of them \
         (`prime-agents runs list`), or measure for a time"
    )]
    Stepless { runs: u32, status: String },
    #[error("no run ended in the time that was measured: give a longer time, or a smaller problem")]
    NothingEnded,
}
