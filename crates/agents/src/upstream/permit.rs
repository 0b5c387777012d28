//! The right to have one request at a backend. Returned to the pool on drop, however the request
//! ended.

use std::sync::Arc;

use super::attempt_error::AttemptError;
use super::backend::Backend;
use super::pool::Pool;

pub(super) struct Permit {
    pool: Arc<Pool>,
    index: usize,
    /// True if this request is the breaker's trial.
    is_trial: bool,
    has_outcome: bool,
}

impl Permit {
    /// Called by the pool, which has already counted the request.
    pub fn new(pool: Arc<Pool>, index: usize, is_trial: bool) -> Self {
        Self { pool, index, is_trial, has_outcome: false }
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn backend(&self) -> &Backend {
        &self.pool.backends()[self.index]
    }

    /// Counts a request that is about to be sent.
    pub fn sending(&self, is_retry: bool) {
        self.pool.sending(self.index, is_retry);
    }

    pub fn succeeded(&mut self) {
        self.has_outcome = true;
        self.pool.succeeded(self.index, self.is_trial);
    }

    pub fn failed(&mut self, error: &AttemptError) {
        self.has_outcome = true;
        self.pool.failed(self.index, self.is_trial, error);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A trial that was cancelled has proved nothing: another request becomes the trial.
        self.pool.release(self.index, self.is_trial && !self.has_outcome);
    }
}
