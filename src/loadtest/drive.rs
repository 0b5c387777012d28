//! The course of a measurement: all trajectories begin and wait, then the warm-up, then the time that counts, then the
//! end of all.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, TryStreamExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::error::LoadError;
use super::pace::Generator;
use super::plan::Plan;
use super::point::Measured;
use super::report::Length;
use super::session::{Phase, Session};
use super::spent::Spent;
use super::watch::{Accepts, Ended, Watch};
use prime_allocator::Tally;

/// Runs that are handed in at the same time.
const ABREAST: usize = 256;

/// What carries runs out.
pub trait Launch {
    /// Puts a run of a trajectory under way.
    async fn launch(&self, watch: &Arc<Watch>) -> Result<(), LoadError>;

    /// Ends the runs that are under way.
    fn halt(&self);

    /// Waits until all that was decided counts.
    async fn settle(&self) {}

    /// Steps that are durable, where the load is about that.
    fn durable(&self) -> Option<u64> {
        None
    }
}

/// The runs of all trajectories; where one ends, the next begins.
struct Runs<'l, L> {
    launch: &'l L,
    watches: Arc<[Arc<Watch>]>,
    ends: mpsc::UnboundedReceiver<Ended>,
    live: usize,
}

impl<L: Launch> Runs<'_, L> {
    async fn begin(&mut self) -> Result<(), LoadError> {
        let launch = self.launch;
        let all = stream::iter(self.watches.iter().map(Ok));
        all.try_for_each_concurrent(ABREAST, |watch| launch.launch(watch)).await?;
        self.live = self.watches.len();
        Ok(())
    }

    /// Keeps all trajectories under way until then.
    async fn carry_on(&mut self, until: impl Future<Output = ()>) -> Result<(), LoadError> {
        let mut until = std::pin::pin!(until);
        loop {
            let ended = tokio::select! {
                () = &mut until => return Ok(()),
                ended = self.ends.recv() => ended.ok_or(LoadError::Gone)?,
            };
            if let Some(outcome) = ended.failure {
                return Err(LoadError::Ended { trajectory: ended.trajectory, outcome });
            }
            self.launch.launch(&self.watches[ended.trajectory as usize]).await?;
        }
    }

    /// Ends all, and waits until they have ended.
    async fn end(mut self) {
        self.launch.halt();
        while self.live > 0 && self.ends.recv().await.is_some() {
            self.live -= 1;
        }
    }
}

/// Measures a load on so many trajectories.
///
/// # Errors
/// When a run ends as it should not, or nothing was decided in the time.
pub async fn measure<L: Launch>(
    plan: &Plan,
    trajectories: u32,
    accepts: Accepts,
    launch: &L,
) -> Result<Measured, LoadError> {
    let (steps, time) = match plan.length {
        Length::Steps(steps) => (Some(steps), None),
        Length::Seconds(seconds) => (None, Some(Duration::from_secs_f64(seconds))),
    };
    let session = Arc::new(Session::new(trajectories, steps, plan.rate, plan.has_legs));
    let (ended, ends) = mpsc::unbounded_channel();
    let watch = |trajectory| Arc::new(Watch::new(Arc::clone(&session), trajectory, accepts, ended.clone()));
    let watches: Arc<[Arc<Watch>]> = (0..trajectories).map(watch).collect();
    let mut runs = Runs { launch, watches: Arc::clone(&watches), ends, live: 0 };

    let tally = Tally::start();
    let empty = Spent::by_now(tally);
    runs.begin().await?;
    runs.carry_on(session.all_idle()).await?;
    let idle_bytes = Spent::by_now(tally).since(empty).heap.map(|heap| heap.live());

    let is_warmed = !plan.warmup.is_zero();
    if is_warmed {
        session.enter(Phase::WarmUp);
    }
    let start = |phase| {
        let read = (launch.durable(), Spent::by_now(tally), session.now());
        session.enter(phase);
        read
    };
    let mut first = if is_warmed { None } else { Some(start(Phase::Measuring)) };
    let generator = match &session.schedule {
        Some(schedule) => {
            schedule.begin(session.now());
            Some(Generator::start(Arc::clone(&session), Arc::clone(&watches))?)
        }
        None => {
            watches.iter().for_each(|watch| watch.gate.open());
            None
        }
    };
    if is_warmed {
        runs.carry_on(sleep(plan.warmup)).await?;
        first = Some(start(Phase::Measuring));
    }
    let (durable_before, spent_before, started) = first.expect("invariant: it was read, with a warm-up or without");
    match time {
        Some(time) => runs.carry_on(sleep(time)).await?,
        None => {
            let counted = async {
                session.all_finished().await;
                launch.settle().await;
            };
            runs.carry_on(counted).await?;
        }
    }
    let (durable_after, spent_after, stopped) = start(Phase::Over);
    let decided: Vec<_> = watches.iter().map(|watch| watch.decided()).collect();
    let late = generator.map(Generator::end);
    runs.end().await;

    let record = session.take_records();
    let durable = durable_before.zip(durable_after).map(|(before, after)| after.saturating_sub(before));
    // Of a number of steps the last decision is the end, not the moment at which it was noticed.
    let is_last = steps.is_some() && durable.is_none();
    let stopped = if is_last { record.last.max(started) } else { stopped };
    let seconds = (Duration::from_nanos(stopped.saturating_sub(started)).as_secs_f64()).max(1e-9);
    let rate = session
        .schedule
        .as_ref()
        .map(|schedule| schedule.rate(stopped, decided.into_iter(), record.latency.len(), seconds));
    Ok(Measured {
        trajectories,
        seconds,
        spent: spent_after.since(spent_before),
        idle_bytes,
        pace: rate.zip(late),
        durable: durable.map(|steps| (steps, super::histogram::empty())),
        record,
    })
}
