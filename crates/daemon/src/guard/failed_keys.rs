//! Requests without a valid key: the answers to an address that sends many are delayed, and a burst
//! of them is logged once. Valid keys are never delayed, however many wrong ones come from the same
//! address: keys have 256 random bits, so the point is not to hinder guessing but to keep load and
//! log small.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::address::network_of;
use crate::error::ApiError;

/// A burst ends when no failure came for this long.
const BURST_ENDS: Duration = Duration::from_mins(1);
/// Failures of a burst that are answered at once.
const AT_ONCE: u32 = 20;
/// The delay that each further answer adds to that of the one before it, and the longest delay.
const SLOWER: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(5);
/// Addresses that are told apart; further ones share a burst.
const ADDRESSES_MAX: usize = 10_000;
const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

struct Burst {
    failures: u32,
    last: Instant,
}

#[derive(Default)]
struct Bursts {
    of_addresses: HashMap<IpAddr, Burst>,
    /// When bursts that had ended were last removed.
    cleaned: Option<Instant>,
}

impl Bursts {
    /// Makes room for another address, at most once a minute. Returns whether there is room.
    fn has_room(&mut self, now: Instant) -> bool {
        let is_due = self.cleaned.is_none_or(|cleaned| now.duration_since(cleaned) >= BURST_ENDS);
        if self.of_addresses.len() >= ADDRESSES_MAX && is_due {
            self.of_addresses.retain(|_, burst| now.duration_since(burst.last) < BURST_ENDS);
            self.cleaned = Some(now);
        }
        self.of_addresses.len() < ADDRESSES_MAX
    }
}

/// The bursts of all addresses.
#[derive(Default)]
pub struct FailedKeys(Mutex<Bursts>);

impl FailedKeys {
    /// Notes a failure. Returns how long its answer must wait.
    pub fn note(&self, address: Option<IpAddr>, error: &ApiError) -> Duration {
        let now = Instant::now();
        let mut bursts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Without room, new addresses share one burst, so that memory stays bounded.
        let mut address = address.map_or(OTHERS, network_of);
        if !bursts.of_addresses.contains_key(&address) && !bursts.has_room(now) {
            address = OTHERS;
        }

        let burst = bursts.of_addresses.entry(address).or_insert(Burst { failures: 0, last: now });
        if now.duration_since(burst.last) >= BURST_ENDS {
            tracing::info!(%address, failures = burst.failures, "the last burst of requests without a valid key");
            burst.failures = 0;
        }

        burst.last = now;
        burst.failures = burst.failures.saturating_add(1);
        if burst.failures == 1 {
            tracing::warn!(%address, "{error}; further such requests of this address are not logged until it pauses");
        }
        // The inner limit only keeps the product from overflowing.
        (SLOWER * burst.failures.saturating_sub(AT_ONCE).min(1_000)).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(failed: &FailedKeys, address: [u8; 4]) -> Duration {
        failed.note(Some(address.into()), &ApiError::unauthorized("no"))
    }

    #[tokio::test(start_paused = true)]
    async fn many_failures_of_an_address_are_answered_ever_later() {
        let failed = FailedKeys::default();
        for _ in 0..20 {
            assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::ZERO);
        }
        assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::from_millis(100));
        assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::from_millis(200));
        for _ in 0..1_000 {
            note(&failed, [192, 0, 2, 1]);
        }
        assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::from_secs(5));
        assert_eq!(note(&failed, [192, 0, 2, 2]), Duration::ZERO, "another address");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::from_secs(5));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(note(&failed, [192, 0, 2, 1]), Duration::ZERO, "the burst is over");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_addresses_are_told_apart() {
        let failed = FailedKeys::default();
        for address in 0..30_000_u32 {
            note(&failed, (address + (1 << 24)).to_be_bytes());
        }
        assert!(failed.0.lock().unwrap().of_addresses.len() <= ADDRESSES_MAX + 1);
        tokio::time::advance(BURST_ENDS).await;
        note(&failed, [192, 0, 2, 1]);
        assert_eq!(
            failed.0.lock().unwrap().of_addresses.len(),
            1,
            "those that paused are forgotten"
        );
    }
}
