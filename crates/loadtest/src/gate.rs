//! Holds a trajectory until its next step is due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Resumes a trajectory that waits at a gate.
pub type Wake = Box<dyn FnOnce() + Send>;

/// Lets as many steps of one trajectory pass as were released.
#[derive(Default)]
pub struct Gate {
    released: AtomicU64,
    wake: Mutex<Option<Wake>>,
}

impl Gate {
    /// Returns whether a trajectory must wait after `done` steps.
    pub fn is_shut(&self, done: u64) -> bool {
        self.released.load(Ordering::Acquire) <= done
    }

    /// Lets one more step pass.
    pub fn release(&self) {
        self.released.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    /// Lets all further steps pass.
    pub fn open(&self) {
        self.released.store(u64::MAX, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Calls `wake` when the next step may pass, which may be at once.
    pub fn wait(&self, done: u64, wake: Wake) {
        // Checked under the lock, so that no release is missed between check and store.
        let mut waiting = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_shut(done) {
            *waiting = Some(wake);
        } else {
            // Called without the lock, because `wake` may come back to this gate.
            drop(waiting);
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn released_steps_pass() {
        let gate = Gate::default();
        let woken = Arc::new(AtomicU64::new(0));
        let wake = || {
            let woken = Arc::clone(&woken);
            Box::new(move || {
                woken.fetch_add(1, Ordering::SeqCst);
            }) as Wake
        };
        let count = || woken.load(Ordering::SeqCst);

        gate.wait(0, wake());
        assert!(gate.is_shut(0) && count() == 0);

        gate.release();
        assert!(!gate.is_shut(0) && gate.is_shut(1) && count() == 1);

        // Released while nothing waited: the next wait ends at once.
        gate.release();
        gate.wait(1, wake());
        assert_eq!(count(), 2);

        gate.wait(2, wake());
        gate.open();
        assert!(!gate.is_shut(1 << 60) && count() == 3);
    }
}
