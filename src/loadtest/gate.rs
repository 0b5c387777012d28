//! Where a trajectory waits until its next step is due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::runtime::Wake;

/// Lets steps of one trajectory through, as many as were released.
#[derive(Default)]
pub struct Gate {
    released: AtomicU64,
    wake: Mutex<Option<Wake>>,
}

impl Gate {
    /// Whether a trajectory that has done so many steps must wait.
    pub fn is_shut(&self, done: u64) -> bool {
        self.released.load(Ordering::Acquire) <= done
    }

    /// Lets one more step through.
    pub fn release(&self) {
        self.released.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    /// Lets all steps through.
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

    /// Calls `wake` when the next step is let through; at once, if it is.
    pub fn wait(&self, done: u64, wake: Wake) {
        let mut place = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_shut(done) {
            *place = Some(wake);
        } else {
            drop(place);
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn as_many_steps_pass_as_were_released() {
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
        // Released while nobody waited: the next who comes is let through.
        gate.release();
        gate.wait(1, wake());
        assert_eq!(count(), 2);
        gate.wait(2, wake());
        gate.open();
        assert!(!gate.is_shut(1 << 60) && count() == 3);
    }
}
