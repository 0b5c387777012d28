//! How many runs of one key, and of one task, are accepted in a minute: at once as many as in a
//! minute, then one after the other. Forgets the names whose runs are long accepted.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);
/// Names above which those without recent runs are forgotten.
const NAMES_MAX: usize = 1_024;

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Most runs in a minute.
    pub most: u32,
    /// The key of the configuration that says so.
    pub key: String,
    /// Until the next one is accepted.
    pub wait: Duration,
}

/// When the runs so far would all have been accepted one after the other, by the key of the
/// configuration and the name that it limits.
#[derive(Default)]
pub struct Rates(Mutex<HashMap<String, Instant>>);

impl Rates {
    /// Counts a run against all of these limits, or against none. Each is most runs in a minute,
    /// the key of the configuration that says so, and what is limited.
    ///
    /// # Errors
    /// The limit that it waits for longest.
    pub fn count(&self, limits: &[(u32, String, String)]) -> Result<(), Reached> {
        if limits.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);

        let after = |(most, _, name): &(u32, String, String)| {
            let last = until.get(name).copied().unwrap_or(now).max(now);
            last + MINUTE / (*most).max(1)
        };
        let reached = limits.iter().filter_map(|limit| {
            let wait = after(limit).saturating_duration_since(now + MINUTE);
            let (most, key, _) = limit;
            (!wait.is_zero()).then(|| Reached { most: *most, key: key.clone(), wait })
        });
        if let Some(longest) = reached.max_by_key(|reached| reached.wait) {
            return Err(longest);
        }

        let counted: Vec<_> = limits.iter().map(|limit| (limit.2.clone(), after(limit))).collect();
        if until.len() > NAMES_MAX {
            until.retain(|_, last| *last > now);
        }
        until.extend(counted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn limit(most: u32, name: &str) -> (u32, String, String) {
        (most, format!("limit of {name}"), name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_minutes_runs_are_accepted_at_once_and_then_one_after_the_other() {
        let rates = Rates::default();
        let one = || rates.count(&[limit(3, "ada")]);
        for _ in 0..3 {
            assert_eq!(one(), Ok(()));
        }
        let wait = Duration::from_secs(20);
        let reached = Reached { most: 3, key: "limit of ada".to_owned(), wait };
        assert_eq!(one(), Err(reached));
        assert_eq!(rates.count(&[limit(3, "bob")]), Ok(()), "another key has its own");

        advance(Duration::from_millis(19_999)).await;
        assert_eq!(one().unwrap_err().wait, Duration::from_millis(1));
        advance(Duration::from_millis(1)).await;
        assert_eq!(one(), Ok(()));
        assert!(one().is_err());

        advance(Duration::from_hours(1)).await;
        for _ in 0..3 {
            assert_eq!(one(), Ok(()), "a pause gives no more than a minute's runs");
        }
        assert!(one().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_one_limit_refuses_counts_against_no_other() {
        let rates = Rates::default();
        let both = [limit(1, "ada"), limit(2, "kmp")];
        assert_eq!(rates.count(&both), Ok(()));
        for _ in 0..5 {
            assert_eq!(rates.count(&both).unwrap_err().key, "limit of ada");
        }
        assert_eq!(rates.count(&[limit(2, "kmp")]), Ok(()));
        assert!(rates.count(&[limit(2, "kmp")]).is_err());
        assert_eq!(rates.count(&[]), Ok(()));
    }
}
