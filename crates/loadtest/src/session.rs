//! The state that the threads of one measurement share: clock, phase, and a record per thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::record::{Record, StageKind};
use super::schedule::Schedule;

/// The phases of a measurement, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Trajectories start, and wait for their first proposal.
    Idle,
    /// Steps run, but do not count yet.
    WarmUp,
    /// Steps count.
    Measuring,
    /// The measurement is over; the runs end.
    Over,
}

/// The shared state of one measurement.
pub struct Session {
    id: u64,
    epoch: Instant,
    phase: AtomicU8,
    trajectories: u32,
    /// Steps to measure per trajectory, if that limits the measurement.
    pub(crate) steps: Option<u64>,
    pub(crate) schedule: Option<Schedule>,
    /// Empty unless stages are timed.
    pub(crate) stages: Box<[StageKind]>,
    /// Trajectories that wait for their first proposal.
    idle: AtomicU32,
    /// Trajectories whose steps are all measured.
    finished: AtomicU32,
    changed: Notify,
    records: Mutex<Vec<Arc<Mutex<Record>>>>,
}

thread_local! {
    /// This thread's record, and the session it belongs to.
    static RECORD: RefCell<Option<(u64, Arc<Mutex<Record>>)>> = const { RefCell::new(None) };
}

static SESSIONS: AtomicU64 = AtomicU64::new(0);

impl Session {
    pub(crate) fn new(
        trajectories: u32,
        steps: Option<u64>,
        rate: Option<f64>,
        stages: &[StageKind],
    ) -> Self {
        Self {
            id: SESSIONS.fetch_add(1, Ordering::Relaxed),
            epoch: Instant::now(),
            phase: AtomicU8::new(Phase::Idle as u8),
            trajectories,
            steps,
            schedule: rate.map(|rate| Schedule::new(rate, trajectories)),
            stages: stages.into(),
            idle: AtomicU32::new(0),
            finished: AtomicU32::new(0),
            changed: Notify::new(),
            records: Mutex::default(),
        }
    }

    /// Nanoseconds since the session's epoch.
    pub fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// True if the stages of steps are timed, so that [`Trajectory::step`](crate::Trajectory::step)
    /// needs their times.
    pub fn wants_stages(&self) -> bool {
        !self.stages.is_empty()
    }

    /// True if the measurement is in this phase.
    pub fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// Records that a trajectory waits for its first proposal.
    pub(crate) fn count_idle(&self) {
        self.count(&self.idle);
    }

    /// Records that all steps of a trajectory are measured.
    pub(crate) fn count_finished(&self) {
        self.count(&self.finished);
    }

    fn count(&self, counter: &AtomicU32) {
        if counter.fetch_add(1, Ordering::AcqRel) + 1 == self.trajectories {
            // The permit is kept if nothing waits yet.
            self.changed.notify_one();
        }
    }

    /// Waits until all trajectories wait for their first proposal.
    pub(crate) async fn all_idle(&self) {
        self.all(&self.idle).await;
    }

    /// Waits until the steps of all trajectories are measured.
    pub(crate) async fn all_finished(&self) {
        self.all(&self.finished).await;
    }

    async fn all(&self, counter: &AtomicU32) {
        while counter.load(Ordering::Acquire) < self.trajectories {
            self.changed.notified().await;
        }
    }

    /// Updates this thread's record.
    pub(crate) fn write(&self, write: impl FnOnce(&mut Record)) {
        RECORD.with_borrow_mut(|own| {
            let record = match own {
                Some((id, record)) if *id == self.id => record,
                _ => {
                    // The first write of this thread in this session.
                    let record = Arc::new(Mutex::new(Record::new(self.stages.len())));
                    self.records
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(Arc::clone(&record));
                    &own.insert((self.id, record)).1
                }
            };
            // Uncontended until the measurement is over.
            write(&mut record.lock().unwrap_or_else(PoisonError::into_inner));
        });
    }

    /// Merges the records of all threads, at the end of the measurement.
    pub(crate) fn take_records(&self) -> Record {
        let mut all = Record::new(self.stages.len());
        for record in &*self.records.lock().unwrap_or_else(PoisonError::into_inner) {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(&std::mem::replace(&mut *record, Record::small()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Tokens;
    use super::*;

    #[test]
    fn each_thread_has_a_record_per_session() {
        let sessions = [Session::new(1, None, None, &[]), Session::new(1, None, None, &[])];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..3 {
                        sessions[0].write(|record| record.step(round, 10, Tokens::default()));
                        sessions[1].write(|record| record.failures += 1);
                    }
                });
            }
        });

        let records = sessions.each_ref().map(Session::take_records);
        assert_eq!(records.each_ref().map(|record| record.latency.len()), [12, 0]);
        assert_eq!(records.each_ref().map(|record| record.failures), [0, 12]);
    }

    #[tokio::test]
    async fn the_last_trajectory_ends_the_wait() {
        let session = Session::new(2, None, None, &[]);
        let (mut idle, mut finished) =
            (Box::pin(session.all_idle()), Box::pin(session.all_finished()));
        assert!(futures::poll!(&mut idle).is_pending());
        session.count_idle();
        assert!(futures::poll!(&mut idle).is_pending());
        session.count_idle();
        idle.await;

        assert!(futures::poll!(&mut finished).is_pending());
        session.count_finished();
        session.count_finished();
        finished.await;
    }
}
