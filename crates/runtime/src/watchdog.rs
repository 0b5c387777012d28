//! The thread that looks for hanging agents. It is not an arbiter, so that no agent can block it.

use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::Duration;

use actix::System;
use tokio::time::Instant;

use super::cells::Cells;

/// Handle of the thread, which ends when this is dropped.
pub struct Watchdog {
    thread: Thread,
    _alive: Arc<()>,
}

/// A cell is looked at at least this often, because the watchdog keeps the deadlines of runs whose
/// agent hangs.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
const INTERVAL_MIN: Duration = Duration::from_millis(10);

impl Watchdog {
    /// Must be called within an actix system.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(cells: Weak<Cells>, limit: Duration) -> std::io::Result<Self> {
        let system = System::current();
        // Four looks per limit: a hang is found at most a quarter late.
        let interval = (limit / 4).clamp(INTERVAL_MIN, INTERVAL_MAX);

        let alive = Arc::new(());
        let watched = Arc::downgrade(&alive);

        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            // A replacement's arbiter belongs to the system.
            System::set_current(system);
            while watched.strong_count() > 0 {
                std::thread::park_timeout(interval);

                let Some(cells) = cells.upgrade() else { return };
                cells.look(Instant::now(), limit);
            }
        })?;
        Ok(Self { thread: thread.thread().clone(), _alive: alive })
    }

    /// Looks now instead of at the end of the interval.
    pub fn wake(&self) {
        self.thread.unpark();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.thread.unpark();
    }
}
