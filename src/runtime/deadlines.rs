//! When the time of a cell's runs is up: one timer for all of them, so that thousands cost the Supervisor nothing while
//! it works on others.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use actix::{ActorFuture, Context};
use tokio_util::time::{DelayQueue, delay_queue};

use super::batch::LooksRound as _;
use super::submission::RunId;
use super::supervisor::Supervisor;

/// A timer further away would overflow the queue's clock; steps and tokens still end such a run.
const FURTHEST: Duration = Duration::from_hours(365 * 24);

/// The deadlines of a cell's runs.
#[derive(Default)]
pub struct Deadlines(DelayQueue<RunId>);

impl Deadlines {
    /// Notes that a run's time is up after `wall`. `None` where that is too far away to matter.
    pub fn note(&mut self, run: RunId, wall: Duration) -> Option<delay_queue::Key> {
        (wall < FURTHEST).then(|| self.0.insert(run, wall))
    }

    /// The next run whose time is up; else the task is woken when there is one.
    pub fn next(&mut self, task: &mut TaskContext<'_>) -> Option<RunId> {
        // An empty queue is ready too, and wakes the task when something is put in.
        match self.0.poll_expired(task) {
            Poll::Ready(expired) => expired.map(delay_queue::Expired::into_inner),
            Poll::Pending => None,
        }
    }

    /// Forgets a deadline that has not come.
    pub fn forget(&mut self, key: delay_queue::Key) {
        self.0.try_remove(&key);
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
