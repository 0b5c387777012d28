//! One phase of a program: how many trajectories go through how many actors, and how their
//! coordinators count.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Steps of each trajectory before the clock starts, where there are several.
const WARM: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// All trajectories through one executor, one verifier and one coordinator.
    Shared,
    /// Three actors of its own for each trajectory.
    Trios,
}

#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub topology: Topology,
    pub trajectories: u32,
    /// Steps of each trajectory before the clock starts.
    pub warm: u64,
    /// Steps of each trajectory that are timed.
    pub steps: u64,
    /// Each step is timed by itself, which costs a read of the clock a step.
    pub is_timed: bool,
}

impl Spec {
    /// Parses a word of the command line.
    ///
    /// # Errors
    /// If the word has none of the three forms, or one of its numbers cannot be read.
    pub fn parse(word: &str) -> Result<Self, String> {
        let parts: Vec<&str> = word.split(':').collect();

        let number = |text: &str| {
            text.parse::<u64>().map_err(|error| format!("`{text}` in `{word}`: {error}"))
        };
        let many = |topology, trajectories: &str, steps| {
            let trajectories = u32::try_from(number(trajectories)?)
                .map_err(|_| format!("`{word}`: too many trajectories"))?;
            Ok(Self { topology, trajectories, warm: WARM, steps: number(steps)?, is_timed: false })
        };

        match parts[..] {
            ["seq", steps] => {
                let steps = number(steps)?;
                let warm = (steps / 10).clamp(10, 20_000);
                Ok(Self {
                    topology: Topology::Shared,
                    trajectories: 1,
                    warm,
                    steps,
                    is_timed: true,
                })
            }
            ["shared", trajectories, steps] => many(Topology::Shared, trajectories, steps),
            ["trios", trajectories, steps] => many(Topology::Trios, trajectories, steps),
            _ => Err(format!(
                "`{word}` is none of seq:STEPS, shared:TRAJECTORIES:STEPS, trios:TRAJECTORIES:STEPS"
            )),
        }
    }

    /// Groups of three actors.
    #[must_use]
    pub fn trios(&self) -> usize {
        if self.topology == Topology::Trios { self.trajectories as usize } else { 1 }
    }

    /// The name of its entry in the report.
    #[must_use]
    pub fn name(&self) -> String {
        match self.topology {
            _ if self.is_timed => "seq".to_owned(),
            Topology::Shared => format!("shared{}", self.trajectories),
            Topology::Trios => format!("trios{}", self.trajectories),
        }
    }
}

/// What all coordinators of a phase share.
pub struct Phase {
    pub spec: Spec,
    /// The step at which a trajectory's lap ends.
    target: AtomicU64,
    /// Trajectories whose lap has not ended.
    live: AtomicUsize,
    done: UnboundedSender<()>,
    samples: Mutex<Vec<u64>>,
}

impl Phase {
    /// A phase, and a receiver that is told when a lap has ended.
    #[must_use]
    pub fn new(spec: Spec) -> (Arc<Self>, UnboundedReceiver<()>) {
        let (done, ended) = unbounded_channel();
        let (target, live, samples) = (AtomicU64::new(0), AtomicUsize::new(0), Mutex::default());
        (Arc::new(Self { spec, target, live, done, samples }), ended)
    }

    pub fn begin_lap(&self, target: u64) {
        self.target.store(target, Ordering::SeqCst);
        self.live.store(self.spec.trajectories as usize, Ordering::SeqCst);
    }

    /// The steps' times since the last call, in nanoseconds.
    pub fn take_samples(&self) -> Vec<u64> {
        std::mem::take(&mut self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn finish_one(&self) {
        if self.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Sending fails only when the program ends, and then nobody waits.
            let _ = self.done.send(());
        }
    }
}

/// What a coordinator decides with, one for each.
pub struct Coordinator {
    phase: Arc<Phase>,
    last: Instant,
    samples: Vec<u64>,
}

impl Coordinator {
    #[must_use]
    pub fn new(phase: &Arc<Phase>) -> Self {
        // Room for all samples, so that a timed step never allocates.
        let samples = if phase.spec.is_timed { phase.spec.warm + phase.spec.steps + 1 } else { 0 };
        let samples = Vec::with_capacity(usize::try_from(samples).unwrap_or(0));
        Self { phase: Arc::clone(phase), last: Instant::now(), samples }
    }

    /// The next request, or none where the trajectory's lap is over.
    #[inline]
    pub fn decide(&mut self, verdict: crate::Verdict) -> Option<crate::Request> {
        let crate::Verdict { trajectory, step, score, payload } = verdict;

        if self.phase.spec.is_timed {
            let now = Instant::now();
            let nanos = now.duration_since(self.last).as_nanos();
            self.samples.push(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.last = now;
        }

        // A real coordinator would backtrack; here no step is ever rejected.
        if score > 0.5 {
            return None;
        }

        let step = step + 1;
        if step >= self.phase.target.load(Ordering::Relaxed) {
            // Once a lap, so that no lock is taken between steps.
            if self.phase.spec.is_timed {
                let samples = std::mem::take(&mut self.samples);
                *self.phase.samples.lock().unwrap_or_else(PoisonError::into_inner) = samples;
            }
            self.phase.finish_one();
            return None;
        }

        Some(crate::Request { trajectory, step, payload })
    }
}
