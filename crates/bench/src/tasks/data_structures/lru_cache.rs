//! LRU Cache: a cache of bounded capacity that evicts the least recently used key.
//!
//! A step is one operation; its line is the result.

use crate::tasks::operation::{as_text, validate_count};
use crate::tasks::pages::lru_cache as page;
use crate::tasks::prelude::*;

/// The task `lru-cache`.
pub struct LruCache;

/// The largest cache that a user may give: its keys are searched linearly.
const CAPACITY_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Most keys that the cache holds.
    pub capacity: usize,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `get k`: reads key k, which becomes the most recent if it is cached.
        Get(key) = "get",
        /// `put k v`: stores value v under key k, which becomes the most recent.
        Put(key, value) = "put",
    }
);
as_text!(Operation);

impl Operation {
    /// The key of the operation.
    pub fn key(self) -> usize {
        let (Self::Get(key) | Self::Put(key, _)) = self;
        key
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// (key, value), most recent first.
    pub cache: Vec<(usize, usize)>,
    /// Number of gets so far of a cached key.
    pub hits: usize,
    /// Number of gets so far of a key that was not cached.
    pub misses: usize,
    /// Number of keys evicted so far.
    pub evictions: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The key's place in the cache, 0 for the most recent; `None` if it is not cached.
    pub fn place(&self, key: usize) -> Option<usize> {
        self.cache.iter().position(|(cached, _)| *cached == key)
    }

    fn value(&self, key: usize) -> Option<usize> {
        self.place(key).map(|place| self.cache[place].1)
    }

    /// Puts the key first with this value, removing it from its place if it is cached.
    fn put_first(&mut self, key: usize, value: usize) {
        if let Some(place) = self.place(key) {
            self.cache.remove(place);
        }
        self.cache.insert(0, (key, value));
    }
}

word_actions!(Action {
    /// A get finds this value.
    Hit(value) = "hit",
    /// A get of a key that is not cached.
    Miss = "miss",
    /// A put of a cached key.
    Update = "update",
    /// A put of a new key while the cache is not full.
    Insert = "insert",
    /// A put of a new key, for which this one leaves.
    Evict(key) = "evict",
});

impl Task for LruCache {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let operations = page::size::OPERATIONS.draw(difficulty, rng);
            let capacity = page::size::CAPACITY.draw(difficulty, rng);
            let operations = (0..operations).map(|_| {
                let put = rng.chance(1, 2);
                let key = rng.index(2 * capacity);
                if put { Operation::Put(key, rng.index(100)) } else { Operation::Get(key) }
            });

            let instance = Instance { capacity, operations: operations.collect() };
            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(state, _)| {
                state.hits > 0 && state.misses > 0 && state.evictions >= 2
            }) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let capacity = instance.capacity;
        let range = format!("is {capacity}; give 1 to {CAPACITY_MAX}");
        InvalidInput::unless((1..=CAPACITY_MAX).contains(&capacity), "capacity", range)?;
        validate_count("operations", instance.operations.len())
    }

    fn start(_: &Instance) -> State {
        State { done: 0, cache: Vec::new(), hits: 0, misses: 0, evictions: 0, last: Last(None) }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::sayable("cache", state.cache.iter().flat_map(|(key, value)| [*key, *value]))
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;

        match (*action, operation) {
            (Action::Hit(_), Operation::Get(key)) => {
                let value = state.value(key).ok_or(Illegal("the key is not cached"))?;
                state.put_first(key, value);
                state.hits += 1;
            }
            (Action::Miss, Operation::Get(_)) => state.misses += 1,
            (Action::Update, Operation::Put(key, value)) => {
                state.place(key).ok_or(Illegal("the key is not cached"))?;
                state.put_first(key, value);
            }
            (Action::Insert, Operation::Put(key, value)) => {
                if state.place(key).is_some() {
                    return Err(Illegal("the key is cached already"));
                }
                state.put_first(key, value);
            }
            (Action::Evict(evicted), Operation::Put(key, value)) => {
                let place =
                    state.place(evicted).ok_or(Illegal("the key to evict is not cached"))?;
                state.cache.remove(place);
                state.put_first(key, value);
                state.evictions += 1;
            }
            _ => return Err(Illegal("the operation has no such result")),
        }

        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let operation = *instance.operations.get(state.done)?;
        let cached = state.value(operation.key());

        Some(match operation {
            Operation::Get(_) => cached.map_or(Action::Miss, Action::Hit),
            Operation::Put(..) if cached.is_some() => Action::Update,
            Operation::Put(..) => match state.cache.last() {
                Some((oldest, _)) if state.cache.len() >= instance.capacity => {
                    Action::Evict(*oldest)
                }
                _ => Action::Insert,
            },
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: an operation has one line, and the cache before it
        // leaves one possible: `format` excludes hits and updates of keys that are not cached and
        // inserts of keys that are, `failures` the misses and evictions of cached keys and
        // evictions while there is room, `capacity` the inserts while there is none, and
        // `least-recent` all keys to evict but one.
        let Some(operation) = instance.operations.get(before.done) else { return };
        let cache = &after.cache;

        let mut keys: Vec<_> = cache.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        let distinct = keys.is_sorted_by(|a, b| a < b);
        found.require(page::CAPACITY, cache.len() <= instance.capacity && distinct);

        // The old places by key, sorted for binary search.
        let mut places: Vec<_> =
            before.cache.iter().enumerate().map(|(place, (key, _))| (*key, place)).collect();
        places.sort_unstable();
        let old_place = |key: usize| {
            places.binary_search_by_key(&key, |place| place.0).ok().map(|found| places[found].1)
        };

        // A value comes from this put, or it was there before. Checked at every step, this means
        // that it comes from the latest put of its key.
        let latest = cache.iter().all(|(key, value)| match operation {
            Operation::Put(put, new) if put == key => value == new,
            _ => old_place(*key).is_some_and(|place| before.cache[place].1 == *value),
        });
        found.require(page::LATEST_VALUE, latest);

        let held =
            before.cache.iter().find(|(key, _)| *key == operation.key()).map(|(_, value)| *value);
        found.require(
            page::VALUE_READ,
            !matches!(*action, Action::Hit(value) if held != Some(value)),
        );

        let fails = match *action {
            Action::Miss => held.is_none(),
            Action::Evict(_) => before.cache.len() >= instance.capacity && held.is_none(),
            _ => true,
        };
        found.require(page::FAILURES, fails);

        let oldest = before.cache.last().map(|(key, _)| *key);
        let takes_oldest = !matches!(*action, Action::Evict(key) if oldest != Some(key));
        found.require(page::LEAST_RECENT, takes_oldest);

        let first = cache.first().map(|(key, _)| *key);
        found.require(page::FRONT, *action == Action::Miss || first == Some(operation.key()));
        let others = cache.iter().map(|(key, _)| *key).filter(|key| *key != operation.key());
        found
            .require(page::RELATIVE_ORDER, others.filter_map(old_place).is_sorted_by(|a, b| a < b));

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.operations.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One step an operation.
        instance.operations.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "cache": state.cache,
            "hits": state.hits,
            "misses": state.misses,
            "evictions": state.evictions,
        })
    }
}
