//! The hash chain of a run: each event's hash covers all earlier ones, so that changed, lost or
//! added events are detected.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// SHA-256 over a run's spec and its events up to one of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The hash before the first event: that of the spec.
    pub fn genesis(spec: &str) -> Self {
        Self(Sha256::digest(spec.as_bytes()).into())
    }

    /// The hash after one more event (a line without its newline): SHA-256 of the hash so far and
    /// the event.
    #[must_use]
    pub fn then(self, event: &[u8]) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(event).finalize().into())
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A run's last committed event; `seq` is 0 before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the event; 0 before the first.
    pub seq: u64,
    /// The hash of the chain up to this event.
    pub hash: ChainHash,
}

impl Head {
    /// The head of a run without events.
    pub fn genesis(spec: &str) -> Self {
        Self { seq: 0, hash: ChainHash::genesis(spec) }
    }
}
