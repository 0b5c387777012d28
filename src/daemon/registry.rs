//! The runs that the daemon knows, by id. In memory; old finished ones are forgotten first.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use dashmap::DashMap;

use super::wire::RunRecord;

/// Finished runs that are kept.
const FINISHED_MAX: usize = 10_000;

/// Runs by id.
#[derive(Default)]
pub struct Registry {
    runs: DashMap<String, RunRecord>,
    finished: Mutex<VecDeque<String>>,
    ids: RandomState,
}

impl Registry {
    /// A fresh id for the run that the runtime knows by this number; ids do not show how many runs there were.
    pub fn id_of(&self, number: u64) -> String {
        let mut hasher = self.ids.build_hasher();
        hasher.write_u64(number);
        format!("run_{:016x}", hasher.finish())
    }

    pub fn insert(&self, record: RunRecord) {
        self.runs.insert(record.id.clone(), record);
    }

    pub fn get(&self, id: &str) -> Option<RunRecord> {
        self.runs.get(id).map(|record| record.clone())
    }

    /// Replaces a run's record by its final one.
    pub fn finish(&self, record: RunRecord) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.push_back(record.id.clone());
        self.insert(record);
        if finished.len() > FINISHED_MAX
            && let Some(oldest) = finished.pop_front()
        {
            self.runs.remove(&oldest);
        }
    }
}
