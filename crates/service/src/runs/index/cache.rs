//! The indexes in use, bounded in bytes: the one that was asked least recently is dropped first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::run_index::RunIndex;

/// Maximum bytes of all indexes together. The one in use always stays.
const BYTES_MAX: usize = 192 << 20;

struct Entry {
    index: Arc<Mutex<RunIndex>>,
    bytes: usize,
    /// The number of the last question.
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_run: BTreeMap<String, Entry>,
    questions: u64,
}

#[derive(Default)]
pub struct IndexCache(Mutex<Entries>);

impl IndexCache {
    /// The index of a run; a new, empty one if there was none.
    pub(super) fn get(&self, id: &str) -> Arc<Mutex<RunIndex>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.questions += 1;
        let used = entries.questions;

        let entry = entries.by_run.entry(id.to_owned()).or_insert_with(|| Entry {
            index: Arc::default(),
            bytes: 0,
            used,
        });

        entry.used = used;
        Arc::clone(&entry.index)
    }

    /// Notes the present size of an index, and drops others if all together are too large.
    pub(super) fn note_size(&self, id: &str, bytes: usize) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.by_run.get_mut(id) {
            entry.bytes = bytes;
        }

        while entries.by_run.values().map(|entry| entry.bytes).sum::<usize>() > BYTES_MAX {
            let others = entries.by_run.iter().filter(|(other, _)| *other != id);
            let Some(oldest) =
                others.min_by_key(|(_, entry)| entry.used).map(|(other, _)| other.clone())
            else {
                return;
            };
            entries.by_run.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_asked_least_recently_goes_first() {
        let cache = IndexCache::default();
        let first = cache.get("a");
        cache.note_size("a", BYTES_MAX / 2);
        cache.get("b");
        cache.note_size("b", BYTES_MAX / 2);
        cache.get("a");
        cache.get("c");
        cache.note_size("c", 1);
        assert!(Arc::ptr_eq(&cache.get("a"), &first));
        let kept: Vec<_> = cache.0.lock().unwrap().by_run.keys().cloned().collect();
        assert_eq!(kept, ["a", "c"]);
    }

    #[test]
    fn the_index_in_use_stays_whatever_its_size() {
        let cache = IndexCache::default();
        let index = cache.get("a");
        cache.note_size("a", 2 * BYTES_MAX);
        assert!(Arc::ptr_eq(&cache.get("a"), &index));
    }
}
