//! Why the daemon cannot serve.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use prime_journal::JournalError;
use prime_service::attestation::KeyError;
use prime_service::runs::ScheduleError;
use prime_service::webhooks::WebhookError;

/// Why the daemon cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configured address cannot be bound.
    #[error("server.bind = {bind}: {reason}: {}", bind_remedy(reason))]
    Bind {
        /// The value of `server.bind`.
        bind: SocketAddr,
        /// What the system answered.
        reason: io::Error,
    },
    /// The address is not a loopback address, and no keys protect it.
    #[error(
        "server.bind = {bind}: other machines can reach this address, but there are no keys (server.keys): create one with \
         `prime-agents key new NAME` and add its output to the configuration, or bind 127.0.0.1"
    )]
    NoKeys {
        /// The value of `server.bind`.
        bind: SocketAddr,
    },
    /// The process may not open enough file descriptors for `server.connections_max`; with the
    /// remedy.
    #[error("{0}")]
    Descriptors(String),
    /// The journal cannot be opened or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The key of `server.attestation_key_file` cannot be used.
    #[error("server.attestation_key_file: {0}")]
    AttestationKey(KeyError),
    /// A webhook cannot be used as configured.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// A schedule has a request that cannot become a run.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The open runs of the journal cannot be read or resumed.
    #[error("the open runs of the journal cannot be resumed: {0}")]
    Resume(prime_service::runs::RunError),
    /// The server failed while it started or served.
    #[error("the server failed: {0}")]
    Serve(io::Error),
}

/// What to do about an address that cannot be bound.
#[must_use]
pub fn bind_remedy(reason: &io::Error) -> &'static str {
    match reason.kind() {
        ErrorKind::PermissionDenied => {
            "the port needs rights (below 1024 as a rule): choose another with --set \
             server.bind=HOST:PORT, or give the program the capability CAP_NET_BIND_SERVICE"
        }
        ErrorKind::AddrInUse => {
            "stop the process that uses the port, or choose another with --set \
             server.bind=HOST:PORT"
        }
        ErrorKind::AddrNotAvailable => {
            "this machine does not have the address: choose another with --set \
             server.bind=HOST:PORT"
        }
        _ => "choose another address with --set server.bind=HOST:PORT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_bound_has_its_own_remedy() {
        let said = |kind: ErrorKind| {
            let bind = "127.0.0.1:80".parse().expect("an address");
            DaemonError::Bind { bind, reason: kind.into() }.to_string()
        };

        let refused = said(ErrorKind::PermissionDenied);
        assert!(refused.contains("server.bind = 127.0.0.1:80") && refused.contains("needs rights"));
        assert!(!refused.contains("stop the process"), "{refused}");
        assert!(said(ErrorKind::AddrInUse).contains("stop the process that uses the port"));
        assert!(said(ErrorKind::AddrNotAvailable).contains("does not have the address"));
    }
}
