//! The instances used last, so that an entry of a data set need not be drawn again to be scored.
//! Never waits for a lock: a process may fork at any time, and its child must not find one that
//! stays taken for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use prime_bench::tasks::{Difficulty, InstanceId};

use crate::instance::Named;

/// Most instances that are kept.
const KEPT: usize = 4_096;

type Key = (&'static str, Difficulty, u32, u64);

#[derive(Default)]
struct Recent {
    by_key: HashMap<Key, Arc<Named>>,
    /// Oldest first.
    order: VecDeque<Key>,
}

static RECENT: Mutex<Option<Recent>> = Mutex::new(None);

fn key(id: &InstanceId) -> Key {
    (id.task.spec().slug, id.difficulty, id.index, id.base_seed)
}

/// The kept one of each of these instances, if any; none while another thread holds the lock.
pub fn known<'i>(ids: impl ExactSizeIterator<Item = &'i InstanceId>) -> Vec<Option<Arc<Named>>> {
    let recent = RECENT.try_lock().ok();
    let recent = recent.as_ref().and_then(|recent| recent.as_ref());
    ids.map(|id| recent.and_then(|recent| recent.by_key.get(&key(id))).map(Arc::clone)).collect()
}

/// Keeps these instances, unless another thread holds the lock.
pub fn keep<'n>(named: impl Iterator<Item = &'n Arc<Named>>) {
    let Ok(mut recent) = RECENT.try_lock() else { return };
    let recent = recent.get_or_insert_default();

    for named in named {
        let Some(key) = named.id.as_ref().map(key) else { continue };
        if recent.by_key.insert(key, Arc::clone(named)).is_none() {
            recent.order.push_back(key);
        }
        // One was added at most, so taking one away is enough.
        if recent.order.len() > KEPT
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.by_key.remove(&oldest);
        }
    }
}
