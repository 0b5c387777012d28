//! Logs how connections failed. Malformed heads, which anybody can send in any number, are counted
//! and logged once in a while.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_http::error::DispatchError;
use tokio::time::Instant;

/// The shortest time between two lines.
const INTERVAL: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Counted {
    unlogged: u64,
    logged: Option<Instant>,
}

/// The malformed heads of all connections.
#[derive(Default)]
pub struct MalformedHeads(Mutex<Counted>);

impl MalformedHeads {
    /// Counts one. Returns how many to log now, if it is time.
    fn count(&self) -> Option<u64> {
        let now = Instant::now();
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.unlogged += 1;
        if counted.logged.is_some_and(|logged| now.duration_since(logged) < INTERVAL) {
            return None;
        }
        counted.logged = Some(now);
        Some(std::mem::take(&mut counted.unlogged))
    }

    /// Logs why a connection ended, if that was a failure of this side or a malformed head.
    pub fn log(&self, error: &DispatchError) {
        match error {
            DispatchError::Parse(reason) => {
                tracing::debug!("refused a malformed request: {reason}");
                if let Some(requests) = self.count() {
                    tracing::info!(
                        requests,
                        "refused malformed requests (the last: {reason}); such requests are logged at most once a minute"
                    );
                }
            }
            DispatchError::Service(_) | DispatchError::Body(_) | DispatchError::InternalError => {
                tracing::error!("a response could not be completed: {error}");
            }
            _ => tracing::debug!("a connection ended early: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_one_line_a_minute() {
        let malformed = MalformedHeads::default();
        assert_eq!(malformed.count(), Some(1));
        for _ in 0..1_000 {
            assert_eq!(malformed.count(), None);
        }

        tokio::time::advance(Duration::from_mins(1) - Duration::from_millis(1)).await;
        assert_eq!(malformed.count(), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(malformed.count(), Some(1_002));
    }
}
