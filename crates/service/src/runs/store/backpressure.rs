//! Bounds the events that wait for the journal: beyond the bound, runs wait as well.
//!
//! A commit wakes only some of the waiting runs, unless few bytes are left: each run would produce
//! a few events and wait again, which costs more than the events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use prime_runtime::Wake;

/// Maximum bytes of events, over all runs, that may wait for the journal. More would only be
/// acknowledged later.
const ALL_BYTES_MAX: usize = 6 << 20;
/// Bytes of waiting events up to which a commit wakes all runs.
const FEW_BYTES: usize = ALL_BYTES_MAX / 2;
/// Otherwise a commit wakes one in this many of the waiting runs: those that wait longest.
const WOKEN_SHARE: usize = 32;

/// Shared by every event stream and the writer thread.
#[derive(Default)]
pub struct Backpressure {
    waiting_bytes: AtomicUsize,
    is_closed: AtomicBool,
    /// Wakers of the waiting runs; the first has waited longest.
    wakes: Mutex<VecDeque<Wake>>,
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

    /// Closes the streams before the process ends: they accept nothing from now on.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Calls `wake` after one of the next commits, or at once unless `is_behind`, which is asked
    /// under the lock so that no commit falls between the two.
    pub fn wake_after_commit(&self, wake: Wake, is_behind: impl FnOnce() -> bool) {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        if is_behind() {
            wakes.push_back(wake);
        } else {
            drop(wakes);
            wake();
        }
    }

    /// Resumes runs that had to wait. To be called after each commit.
    pub fn wake(&self) {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);

        let is_little = self.waiting_bytes.load(Ordering::Relaxed) <= FEW_BYTES;
        let count = if is_little { wakes.len() } else { wakes.len().div_ceil(WOKEN_SHARE) };

        let woken: Vec<Wake> = wakes.drain(..count).collect();
        drop(wakes);

        woken.into_iter().for_each(|wake| wake());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Lets `count` runs wait. Returns the runs that were woken, in order.
    fn waiting(backpressure: &Backpressure, count: usize) -> Arc<Mutex<Vec<usize>>> {
        let woken = Arc::new(Mutex::new(Vec::new()));
        for run in 0..count {
            let woken = Arc::clone(&woken);
            backpressure
                .wake_after_commit(Box::new(move || woken.lock().unwrap().push(run)), || true);
        }
        woken
    }

    #[test]
    fn a_commit_wakes_those_that_wait_longest() {
        let backpressure = Backpressure::default();
        backpressure.add(ALL_BYTES_MAX);
        let woken = waiting(&backpressure, 70);
        backpressure.wake();
        assert_eq!(*woken.lock().unwrap(), [0, 1, 2]);
        // Each run gets its turn, however much waits for the journal.
        for _ in 0..69 {
            backpressure.wake();
        }
        assert!(woken.lock().unwrap().iter().copied().eq(0..70));
    }

    #[test]
    fn a_commit_that_leaves_little_wakes_all() {
        let backpressure = Backpressure::default();
        backpressure.add(ALL_BYTES_MAX);
        let woken = waiting(&backpressure, 9);
        backpressure.remove(ALL_BYTES_MAX - FEW_BYTES);
        backpressure.wake();
        assert_eq!(woken.lock().unwrap().len(), 9);
    }

    #[test]
    fn a_run_that_is_not_behind_any_more_goes_on_at_once() {
        let woken = Arc::new(Mutex::new(false));
        let wake = Arc::clone(&woken);
        Backpressure::default()
            .wake_after_commit(Box::new(move || *wake.lock().unwrap() = true), || false);
        assert!(*woken.lock().unwrap());
    }
}
