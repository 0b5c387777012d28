//! The programs that a process has started, so that they can be ended with it: their agents live in
//! threads that nothing waits for.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::AgentError;
use super::process::ProcessPool;

/// The programs of agents that still exist. Clones share the list.
#[derive(Clone, Default)]
pub struct Programs(Arc<Mutex<Vec<Weak<ProcessPool>>>>);

impl Programs {
    pub(super) fn add(&self, pool: &Arc<ProcessPool>) {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A daemon that reloads builds agents again and again: forget those that are gone.
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// Waits until a process of each program has answered the handshake.
    ///
    /// # Errors
    /// The first program that cannot be started or does not answer, and why.
    pub async fn check(&self) -> Result<(), AgentError> {
        // Copied out of the lock, which must not be held across an await.
        let pools: Vec<_> = {
            let pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            pools.iter().filter_map(Weak::upgrade).collect()
        };

        for pool in pools {
            pool.ready().await?;
        }
        Ok(())
    }

    /// Ends all programs and waits for their threads; turns fail from now on.
    pub fn end(&self) {
        let pools = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let pools: Vec<_> = pools.iter().filter_map(Weak::upgrade).collect();

        // All are told to stop before the first is awaited, so that they end at the same time.
        let ending: Vec<_> = pools.iter().filter_map(|pool| pool.stop()).collect();
        for driver in ending {
            // A panic of the thread was reported when it occurred.
            drop(driver.join());
        }
    }
}
