//! Waits that are shorter than the millisecond of tokio's timer, without holding up the thread that waits.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// See [`super::pace`].
const SLACK: NonZeroU64 = NonZeroU64::MIN;
/// Longest sleep; there is nothing to do after it.
const IDLE: Duration = Duration::from_hours(1);

/// Somebody who waits.
struct Waiting {
    until: Instant,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.until.cmp(&other.until)
    }
}

/// A thread that wakes whoever asks. Ends when the last clone is dropped.
#[derive(Clone)]
pub struct Alarm(Sender<Waiting>);

impl Alarm {
    /// # Errors
    /// When there is no thread to be had.
    pub fn start() -> std::io::Result<Self> {
        let (orders, inbox) = unbounded();
        std::thread::Builder::new().name("alarm".to_owned()).spawn(move || watch(&inbox))?;
        Ok(Self(orders))
    }

    /// Waits so long, or a little longer.
    pub async fn sleep(&self, time: Duration) {
        let (wake, woken) = oneshot::channel();
        // The thread lives as long as this does.
        drop(self.0.send(Waiting { until: Instant::now() + time, wake }));
        drop(woken.await);
    }
}

fn watch(inbox: &Receiver<Waiting>) {
    let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
    let mut waiting: BinaryHeap<Reverse<Waiting>> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while let Some(Reverse(first)) = waiting.peek()
            && first.until <= now
        {
            if let Some(Reverse(first)) = waiting.pop() {
                // Whoever waited may be gone.
                let _ = first.wake.send(());
            }
        }
        let sleep = waiting.peek().map_or(IDLE, |Reverse(first)| first.until - now);
        match inbox.recv_timeout(sleep) {
            Ok(order) => waiting.extend(std::iter::once(order).chain(inbox.try_iter()).map(Reverse)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn nobody_is_woken_too_early_and_the_first_comes_first() {
        let alarm = Alarm::start().unwrap();
        let start = Instant::now();
        let wait = |micros| {
            let alarm = alarm.clone();
            async move {
                alarm.sleep(Duration::from_micros(micros)).await;
                start.elapsed()
            }
        };
        let waited = join_all([3_000, 200, 1_000, 0].map(wait)).await;
        for (waited, micros) in waited.into_iter().zip([3_000, 200, 1_000, 0]) {
            assert!(waited >= Duration::from_micros(micros), "{waited:?} instead of {micros} µs");
        }
    }
}
