//! Asynchronous sleeps with microsecond resolution; tokio's timer has milliseconds.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::open_loop::TIMER_SLACK;

/// Longest sleep of the thread without a pending sleep.
const IDLE: Duration = Duration::from_hours(1);

/// A pending sleep.
struct Sleep {
    deadline: Instant,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Sleep {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl Eq for Sleep {}

impl PartialOrd for Sleep {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sleep {
    fn cmp(&self, other: &Self) -> Ordering {
        self.deadline.cmp(&other.deadline)
    }
}

/// Handle to a timer thread, which ends when the last clone is dropped.
#[derive(Clone)]
pub struct PreciseTimer(Sender<Sleep>);

impl PreciseTimer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn start() -> std::io::Result<Self> {
        let (sleeps, inbox) = unbounded();
        std::thread::Builder::new().name("timer".to_owned()).spawn(move || run(&inbox))?;
        Ok(Self(sleeps))
    }

    /// Sleeps for at least this time.
    pub async fn sleep(&self, time: Duration) {
        let (wake, woken) = oneshot::channel();
        // The thread lives at least as long as this handle.
        drop(self.0.send(Sleep { deadline: Instant::now() + time, wake }));
        drop(woken.await);
    }
}

fn run(inbox: &Receiver<Sleep>) {
    // If the kernel refuses, sleeps last a little longer.
    let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK));

    let mut pending: BinaryHeap<Reverse<Sleep>> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while let Some(Reverse(first)) = pending.peek()
            && first.deadline <= now
        {
            if let Some(Reverse(first)) = pending.pop() {
                // The sleeper may have been cancelled.
                let _ = first.wake.send(());
            }
        }

        let sleep = pending.peek().map_or(IDLE, |Reverse(first)| first.deadline - now);
        match inbox.recv_timeout(sleep) {
            Ok(sleep) => {
                pending.extend(std::iter::once(sleep).chain(inbox.try_iter()).map(Reverse));
            }
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
    async fn nothing_wakes_early() {
        let timer = PreciseTimer::start().unwrap();
        let start = Instant::now();
        let wait = |micros| {
            let timer = timer.clone();
            async move {
                timer.sleep(Duration::from_micros(micros)).await;
                start.elapsed()
            }
        };

        let waited = join_all([3_000, 200, 1_000, 0].map(wait)).await;
        for (waited, micros) in waited.into_iter().zip([3_000, 200, 1_000, 0]) {
            assert!(waited >= Duration::from_micros(micros), "{waited:?} instead of {micros} µs");
        }
    }
}
