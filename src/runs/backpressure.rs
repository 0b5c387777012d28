//! Bounds the events that wait for the journal: beyond the bound, runs wait as well.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::runtime::Wake;

/// Bytes of events, over all runs, that may wait for the journal. More of them would only be acknowledged later.
const ALL_BYTES_MAX: usize = 16 << 20;

/// Shared by every event stream and the writer thread.
#[derive(Default)]
pub struct Backpressure {
    waiting_bytes: AtomicUsize,
    is_closed: AtomicBool,
    wakes: Mutex<Vec<Wake>>,
}

impl Backpressure {
    pub fn add(&self, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn remove(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub fn is_exceeded(&self) -> bool {
        self.waiting_bytes.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }

    /// The process is about to end: streams accept nothing from now on.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Calls `wake` after the next commit, or at once unless `is_behind`, which is asked under the lock so that no
    /// commit falls between the two.
    pub fn wake_after_commit(&self, wake: Wake, is_behind: impl FnOnce() -> bool) {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        if is_behind() {
            wakes.push(wake);
        } else {
            drop(wakes);
            wake();
        }
    }

    /// Resumes the runs that had to wait.
    pub fn wake_all(&self) {
        let wakes = std::mem::take(&mut *self.wakes.lock().unwrap_or_else(PoisonError::into_inner));
        wakes.into_iter().for_each(|wake| wake());
    }
}
