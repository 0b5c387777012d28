//! Whether a search sees all runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether all runs are noted that were there when the process started.
#[derive(Default)]
pub struct Indexed(AtomicBool);

impl Indexed {
    pub fn is_complete(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub fn complete(&self) {
        self.0.store(true, Ordering::Release);
    }
}
