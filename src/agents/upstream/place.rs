//! The right to have one request at a server. Given back when it is dropped, however the request ended.

use std::sync::Arc;

use super::member::Member;
use super::pool::Pool;
use super::problem::Problem;

/// See the module.
pub(super) struct Place {
    pool: Arc<Pool>,
    index: usize,
    /// The server's next requests depend on this one.
    is_trial: bool,
    is_judged: bool,
}

impl Place {
    /// For the pool, which has counted it.
    pub fn new(pool: Arc<Pool>, index: usize, is_trial: bool) -> Self {
        Self { pool, index, is_trial, is_judged: false }
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn member(&self) -> &Member {
        &self.pool.members()[self.index]
    }

    /// A request is sent.
    pub fn began(&self, is_retry: bool) {
        self.pool.began(self.index, is_retry);
    }

    /// It was answered.
    pub fn succeeded(&mut self) {
        self.is_judged = true;
        self.pool.succeeded(self.index, self.is_trial);
    }

    /// It failed.
    pub fn failed(&mut self, problem: &Problem) {
        self.is_judged = true;
        self.pool.failed(self.index, self.is_trial, problem);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pool.left(self.index, self.is_trial && !self.is_judged);
    }
}
