//! What the workers of the server share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, mpsc};

use super::clock::now_ms;
use super::readiness::Checks;
use super::reload::ReloadRequest;
use super::store_readings::StoreReadings;
use super::verify::Pools;
use prime_service::attestation::AttestationKey;
use prime_service::runs::Runs;

/// Modules that are checked at the same time.
const UPLOADS_AT_ONCE: usize = 4;

/// Shared by all workers of the server.
pub(super) struct State {
    pub(super) runs: Arc<Runs>,
    /// True if requests need a key. Fixed when the server starts; a reload does not change it.
    pub(super) has_keys: bool,
    /// The names of the keys, and whether each is an admin's; fixed likewise.
    pub(super) keys: BTreeMap<String, bool>,
    /// Start of the server, in milliseconds since 1970.
    pub(super) started_ms: u64,
    pub(super) verify: Pools,
    /// Limits the modules that are checked at the same time.
    pub(super) uploads: Semaphore,
    /// The keys that are uploading a module: each has one upload at a time, so that the bodies of
    /// one key hold up no other key.
    pub(super) uploading: Mutex<BTreeSet<String>>,
    /// The owners that are importing a run: each has one import at a time.
    pub(super) importing: Mutex<BTreeSet<String>>,
    /// What signs attestations; `None` if nothing does.
    pub(super) attestation_key: Option<AttestationKey>,
    /// What `/readyz` knows.
    pub(super) checks: Checks,
    /// What `/metrics` knows of a shared journal.
    pub(super) store: StoreReadings,
    /// Where to request a reload of the configuration; `None` where nothing can be reloaded.
    pub(super) reloads: Option<mpsc::Sender<ReloadRequest>>,
}

impl State {
    pub(super) fn new(
        runs: Arc<Runs>,
        keys: BTreeMap<String, bool>,
        attestation_key: Option<AttestationKey>,
        reloads: Option<mpsc::Sender<ReloadRequest>>,
    ) -> Result<Self, std::io::Error> {
        let verify = Pools::start()?;
        let (checks, store) = (Checks::default(), StoreReadings::default());
        let uploads = Semaphore::new(UPLOADS_AT_ONCE);
        let uploading = Mutex::default();
        Ok(Self {
            runs,
            has_keys: !keys.is_empty(),
            keys,
            started_ms: now_ms(),
            verify,
            uploads,
            uploading,
            importing: Mutex::default(),
            attestation_key,
            checks,
            store,
            reloads,
        })
    }
}
