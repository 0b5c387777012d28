//! LRU Cache: looks the key up, then checks if the cache is full. Keys are letters: a model finds a
//! single byte, but not two.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::lru_cache::{
    Action, Instance, LruCache, Operation, State,
};

use crate::Lesson;
use crate::numbers::{compared, interleaved};

pub struct LruCacheLesson;

impl Lesson for LruCacheLesson {
    type Task = LruCache;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(operation) = instance.operations.get(state.done).copied() else {
            return "-".to_owned();
        };

        let cache: Vec<_> =
            state.cache.iter().map(|(key, value)| format!("{}:{value}", name(*key))).collect();
        let cache = if cache.is_empty() { "-".to_owned() } else { cache.join(" ") };

        let full = interleaved(state.cache.len(), instance.capacity, 2);

        match operation {
            Operation::Get(key) => format!("get {cache} key {}", name(key)),
            Operation::Put(key, _) => format!("put {full} {cache} key {}", name(key)),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = LruCache::reference(instance, state)?;
        let key = instance.operations.get(state.done)?.key();

        let found = state.place(key).map(|place| state.cache[place].1);
        let found = found.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let room = || compared(state.cache.len(), instance.capacity, 2);

        Some(match action {
            Action::Evict(oldest) => format!("{}:{found} {} {}", name(key), room(), name(oldest)),
            Action::Insert => format!("{}:{found} {}", name(key), room()),
            _ => format!("{}:{found}", name(key)),
        })
    }
}

/// The letter of a key, if there are enough letters.
fn name(key: usize) -> String {
    let letter = (b'a'..=b'z').chain(b'A'..=b'Z').nth(key);
    letter.map_or_else(|| format!("#{key}"), |letter| char::from(letter).to_string())
}
