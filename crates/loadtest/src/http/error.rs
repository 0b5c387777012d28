//! Errors of a load on a daemon.

use std::time::Duration;

/// Why a load on a daemon failed. Temporary refusals do not end the test.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpLoadError {
    /// The address is not of the form `http://HOST:PORT`.
    #[error("--url {url}: give http://HOST:PORT, as printed by the daemon at start")]
    Url {
        /// The address, as given.
        url: String,
    },
    /// The key cannot be sent in a header.
    #[error("the key has characters other than visible ASCII: correct PRIME_API_KEY")]
    Key,
    /// A setting of the load is out of range.
    #[error("the load has {what}: give {give}")]
    Load {
        /// What is wrong with the load.
        what: String,
        /// What to give instead.
        give: &'static str,
    },
    /// Nothing accepts connections at the address.
    #[error(
        "no daemon answers on {url}: {reason}: start one with `prime-agents serve`, or give its \
         address with --url"
    )]
    Unreachable {
        /// The address.
        url: String,
        /// The cause, as the system says it.
        reason: String,
    },
    /// Something answers that is not a daemon.
    #[error("{url} answered with status {status}, but is not a prime-agents daemon: check --url")]
    Foreign {
        /// The address.
        url: String,
        /// The HTTP status of its answer.
        status: u16,
    },
    /// The daemon requires a key and got none or a wrong one.
    #[error(
        "{url} does not accept the key: {message}: set PRIME_API_KEY to one of its server.keys"
    )]
    Unauthorized {
        /// The address.
        url: String,
        /// The daemon's message.
        message: String,
    },
    /// The daemon refused the run for good: another try would not help.
    #[error("the daemon refused a run of the load with status {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The daemon's message.
        message: String,
    },
    /// The daemon refused all runs for too long with 429 or 503.
    #[error("the daemon accepted no run for {} s: {message}", patience.as_secs())]
    NeverAccepted {
        /// How long the test tried.
        patience: Duration,
        /// The daemon's last message.
        message: String,
    },
    /// A connection ended or went silent before a response was complete.
    #[error(
        "the response broke off: {reason}: the daemon was stopped or is overloaded, see its log"
    )]
    BrokenOff {
        /// The cause, as the HTTP client says it.
        reason: String,
    },
    /// A response is not of the form that this version expects.
    #[error(
        "the response cannot be read by this version: {reason}: use the load test of the daemon's \
         version"
    )]
    Unreadable {
        /// The parser's message.
        reason: String,
    },
    /// The process may not open enough connections.
    #[error(
        "{connections} connections exceed this process's limit of {limit} file descriptors: raise \
         it (`ulimit -n`), here and for the daemon, or give fewer trajectories"
    )]
    Descriptors {
        /// Number of connections that the load needs.
        connections: u32,
        /// The process's limit of file descriptors.
        limit: u64,
    },
    /// Runs end without a step, so that a number of steps is never reached.
    #[error(
        "{runs} consecutive runs of a client ended without a step, the last as `{status}`: look at \
         one of them (`prime-agents runs list`), or give --duration instead of --steps"
    )]
    Stepless {
        /// Number of such runs in a row.
        runs: u32,
        /// Status of the last one.
        status: String,
    },
    /// No run that was due after the warm-up ended.
    #[error("no run ended during the measurement: give a longer --duration, or a smaller problem")]
    NothingEnded,
}
