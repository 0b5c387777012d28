//! A cache keyed by text that texts used only once cannot flush: segmented LRU.

use hashlink::LruCache;

pub(super) struct SegmentedCache<V> {
    /// Entries used once so far.
    probation: LruCache<String, V>,
    /// Entries used again.
    protected: LruCache<String, V>,
}

impl<V: Clone> SegmentedCache<V> {
    pub(super) fn new(probation_max: usize, protected_max: usize) -> Self {
        Self { probation: LruCache::new(probation_max), protected: LruCache::new(protected_max) }
    }

    /// The value of a text, made if it is not cached.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn get_or_make<E>(
        &mut self,
        text: &str,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        if let Some(known) = self.protected.get(text) {
            return Ok(known.clone());
        }

        // The second use: the text moves to the protected part.
        if let Some((text, known)) = self.probation.remove_entry(text) {
            self.protected.insert(text, known.clone());
            return Ok(known);
        }

        let made = make()?;
        self.probation.insert(text.to_owned(), made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The texts that had to be made.
    fn made(cache: &mut SegmentedCache<usize>, texts: &[&str]) -> Vec<String> {
        let mut made = Vec::new();
        for text in texts {
            let make = || {
                made.push((*text).to_owned());
                Ok::<_, Infallible>(text.len())
            };
            assert_eq!(cache.get_or_make(text, make), Ok(text.len()));
        }
        made
    }

    #[test]
    fn texts_that_are_used_once_evict_none_that_is_used_again() {
        let mut cache = SegmentedCache::new(2, 2);
        assert_eq!(made(&mut cache, &["task", "task", "other", "other"]), ["task", "other"]);

        let lines: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(made(&mut cache, &lines).len(), 100);
        assert!(made(&mut cache, &["task", "other", "line 99"]).is_empty());

        // The least recently used of the protected texts was evicted.
        assert_eq!(made(&mut cache, &["other", "line 99", "task"]), ["task"]);
    }
}
