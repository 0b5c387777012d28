//! Lets requests with the same idempotency key take turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An owner and their idempotency key.
pub type KeyName = (String, String);

/// One lock for each key that is in use.
#[derive(Default)]
pub struct KeyLocks(Mutex<HashMap<KeyName, Arc<tokio::sync::Mutex<()>>>>);

impl KeyLocks {
    /// Does `work` while no other work under the same key is in progress.
    pub async fn in_turn<T>(&self, name: KeyName, work: impl Future<Output = T>) -> T {
        let turn = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(name.clone()).or_default())
        };

        let done = {
            let _turn = turn.lock().await;
            work.await
        };

        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One reference is ours and one is the map's: no other request waits for this key.
        if Arc::strong_count(&turn) == 2 {
            locks.remove(&name);
        }
        done
    }
}
