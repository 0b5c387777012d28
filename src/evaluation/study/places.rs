//! The places of a pool, which all systems of a study share. A run's clock starts when it has its
//! places, so the wait for other runs counts for no system.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The requests that the servers of a pool take at once.
#[derive(Clone)]
pub struct Places {
    semaphore: Arc<Semaphore>,
    total: u32,
}

impl Places {
    /// `total` is at least 1.
    pub fn new(total: u32) -> Self {
        let total = total.max(1);
        Self { semaphore: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Waits for as many places as there are concurrent requests, or for all of them; returned when
    /// the result is dropped.
    pub(super) async fn take(&self, requests: u32) -> OwnedSemaphorePermit {
        let wanted = requests.clamp(1, self.total);
        let permit = Arc::clone(&self.semaphore).acquire_many_owned(wanted).await;
        permit.expect("invariant: nobody closes it")
    }
}
