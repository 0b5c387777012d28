//! When the time of a cell's runs is up: one timer for all of them, so that thousands cost the Supervisor nothing while
//! it works on others.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use actix::{ActorFuture, Context};
use futures::task::{ArcWake, AtomicWaker, waker};
use tokio_util::time::{DelayQueue, delay_queue};

use super::batch::LooksRound as _;
use super::submission::RunId;
use super::supervisor::Supervisor;

/// A timer further away would overflow the queue's clock; steps and tokens still end such a run.
const FURTHEST: Duration = Duration::from_hours(365 * 24);

/// The deadlines of a cell's runs.
pub struct Deadlines {
    queue: DelayQueue<RunId>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Tells a timer that has run out from everything else that wakes the task: looking at the queue costs as much as a hop.
struct Bell {
    has_rung: AtomicBool,
    task: AtomicWaker,
}

impl ArcWake for Bell {
    fn wake_by_ref(bell: &Arc<Self>) {
        bell.has_rung.store(true, Ordering::Release);
        bell.task.wake();
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        let bell = Arc::new(Bell { has_rung: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { queue: DelayQueue::new(), waker: waker(Arc::clone(&bell)), bell }
    }
}

impl Deadlines {
    /// Notes that a run's time is up after `wall`. `None` where that is too far away to matter.
    pub fn note(&mut self, run: RunId, wall: Duration) -> Option<delay_queue::Key> {
        // The queue's timer is set when it is next looked at.
        self.bell.has_rung.store(true, Ordering::Relaxed);
        (wall < FURTHEST).then(|| self.queue.insert(run, wall))
    }

    /// The next run whose time is up; else the task is woken when there is one.
    pub fn next(&mut self, task: &mut TaskContext<'_>) -> Option<RunId> {
        if !self.bell.has_rung.load(Ordering::Acquire) {
            return None;
        }
        // First, so that a timer that runs out meanwhile is heard.
        self.bell.has_rung.store(false, Ordering::Relaxed);
        self.bell.task.register(task.waker());
        let expired = match self.queue.poll_expired(&mut TaskContext::from_waker(&self.waker)) {
            Poll::Ready(expired) => expired.map(delay_queue::Expired::into_inner),
            Poll::Pending => None,
        };
        if expired.is_some() {
            // There may be more.
            self.bell.has_rung.store(true, Ordering::Relaxed);
        }
        expired
    }

    /// Forgets a deadline that has not come.
    pub fn forget(&mut self, key: delay_queue::Key) {
        self.queue.try_remove(&key);
    }
}

/// Ends the runs whose time is up.
pub struct Watch;

impl ActorFuture<Supervisor> for Watch {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        supervisor: &mut Supervisor,
        ctx: &mut Context<Supervisor>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        supervisor.look_round(ctx, task);
        Poll::Pending
    }
}
