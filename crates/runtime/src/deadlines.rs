//! The deadlines of a cell's runs, with one timer for all of them, so that thousands cost the
//! Supervisor nothing while it works on others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures::task::{ArcWake, AtomicWaker, waker};
use tokio_util::time::{DelayQueue, delay_queue};

use super::submission::RunId;

/// Longest deadline kept. A later one would overflow the queue's clock; steps and tokens still end
/// such a run.
const WALL_MAX: Duration = Duration::from_hours(365 * 24);

pub struct Deadlines {
    queue: DelayQueue<RunId>,
    alarm: Arc<Alarm>,
    waker: Waker,
}

/// Distinguishes timer wake-ups from others: polling the queue costs as much as a hop.
struct Alarm {
    has_fired: AtomicBool,
    task: AtomicWaker,
}

impl ArcWake for Alarm {
    fn wake_by_ref(alarm: &Arc<Self>) {
        alarm.has_fired.store(true, Ordering::Release);
        alarm.task.wake();
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        let alarm = Arc::new(Alarm { has_fired: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { queue: DelayQueue::new(), waker: waker(Arc::clone(&alarm)), alarm }
    }
}

impl Deadlines {
    /// Adds a deadline `wall` from now; `None` if it is too far away to matter.
    pub fn insert(&mut self, run: RunId, wall: Duration) -> Option<delay_queue::Key> {
        // The next poll sets the queue's timer.
        self.alarm.has_fired.store(true, Ordering::Relaxed);
        (wall < WALL_MAX).then(|| self.queue.insert(run, wall))
    }

    /// The next run whose deadline has passed. If there is none, the task is woken at the next
    /// deadline.
    pub fn poll_expired(&mut self, task: &mut TaskContext<'_>) -> Option<RunId> {
        if !self.alarm.has_fired.load(Ordering::Acquire) {
            return None;
        }

        // Cleared first, so that a timer that fires meanwhile is not missed.
        self.alarm.has_fired.store(false, Ordering::Relaxed);
        self.alarm.task.register(task.waker());

        let expired = match self.queue.poll_expired(&mut TaskContext::from_waker(&self.waker)) {
            Poll::Ready(expired) => expired.map(delay_queue::Expired::into_inner),
            Poll::Pending => None,
        };

        if expired.is_some() {
            // There may be more.
            self.alarm.has_fired.store(true, Ordering::Relaxed);
        }
        expired
    }

    /// Removes a deadline that has not passed.
    pub fn remove(&mut self, key: delay_queue::Key) {
        self.queue.try_remove(&key);
    }
}
