//! Why the daemon cannot serve.

use std::net::SocketAddr;

use prime_journal::JournalError;

/// Why the daemon cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(
        "server.bind = {bind}: {reason}: stop the process that uses the port, or choose another with --set server.bind=HOST:PORT"
    )]
    Bind { bind: SocketAddr, reason: std::io::Error },
    #[error(
        "server.bind = {bind}: other machines can reach this address, but there are no keys (server.keys): create one with \
         `prime-agents key new NAME` and add its output to the configuration, or bind 127.0.0.1"
    )]
    NoKeys { bind: SocketAddr },
    #[error("{0}")]
    Descriptors(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the open runs of the journal cannot be resumed: {0}")]
    Resume(prime_service::runs::RunError),
    #[error("the server failed: {0}")]
    Serve(std::io::Error),
}
