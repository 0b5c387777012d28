//! A result that is renewed on demand, but at most once in a given time, however many ask for it.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The newest result. Those who ask while it is being renewed wait for the same result.
#[derive(Debug)]
pub struct LatestCheck<T> {
    /// How long a result counts.
    every: Duration,
    latest: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> LatestCheck<T> {
    pub fn new(every: Duration) -> Self {
        Self { every, latest: Mutex::new(None) }
    }

    /// The newest result, renewed if it is too old.
    pub async fn get(&self, renew: impl Future<Output = T>) -> T {
        let mut latest = self.latest.lock().await;
        match &*latest {
            Some((at, result)) if at.elapsed() < self.every => result.clone(),
            _ => {
                let result = renew.await;
                *latest = Some((Instant::now(), result.clone()));
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use tokio::time::timeout;

    use super::*;

    const EVERY: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn however_many_ask_the_check_is_renewed_only_when_it_is_old() {
        let (latest, renewed) = (LatestCheck::new(EVERY), Cell::new(0));
        let ask = || {
            latest.get(async {
                // Others ask meanwhile.
                tokio::task::yield_now().await;
                renewed.set(renewed.get() + 1);
                renewed.get()
            })
        };

        assert_eq!(join_all((0..100).map(|_| ask())).await, [1; 100]);

        tokio::time::advance(EVERY.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(ask().await, 1);

        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((ask().await, ask().await), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_does_not_stop_the_check_of_others() {
        let latest = LatestCheck::new(EVERY);
        let left = timeout(Duration::from_secs(1), latest.get(std::future::pending::<u8>())).await;
        assert!(left.is_err());
        assert_eq!(latest.get(async { 7 }).await, 7);
    }
}
