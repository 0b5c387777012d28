//! A run in progress: a few live lines on standard error, and the trace file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::status::Status;
use crate::cli::output::{count, is_stderr_terminal, note, stderr_columns};
use crate::cli::trajectories::Trajectories;
use prime_protocol::{Decision, Located, Role, RunPlan, TurnId};
use prime_report::TraceLine;
use prime_runtime::{Event, Listener, Observer, Writing};

/// Wall times of a month or more are not shown: for somebody who watches, they are not a limit.
const WALL_MS_SHOWN_MAX: u64 = 30 * 24 * 3_600_000;

/// Pause between two drawings of the status: fast runs would spend their time on the terminal.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause between two lines on a terminal that cannot draw over them, such as `TERM=dumb`.
const PLAIN_PAUSE: Duration = Duration::from_secs(10);

/// Mishaps that are shown; further ones are only counted.
const MISHAPS_SHOWN: u64 = 5;
/// Findings of a locator that are shown.
const LOCATED_SHOWN: u64 = 5;

/// How long the longest trajectory may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The steps of the reference.
    About(u64),
    /// The bound of the problem.
    AtMost(u64),
}

/// Counts for the live lines, and the trace file.
pub struct Live {
    /// Itself, for those who tell it what a model writes.
    me: Weak<Self>,
    bar: ProgressBar,
    /// True if standard error is a terminal: only then is there somebody to watch.
    is_watched: bool,
    expected: Expected,
    fanout: u64,
    max_rounds: u32,
    round: AtomicU64,
    /// Committed steps of the longest trajectory of the round `steps_round`.
    steps: AtomicU64,
    steps_round: AtomicU32,
    ended: AtomicU64,
    /// Milliseconds after the start at which the status is shown again.
    due_ms: AtomicU64,
    retries: AtomicU64,
    backtracks: AtomicU64,
    mishaps: AtomicU64,
    /// How often a locator was asked.
    located: AtomicU64,
    reviews_needed: AtomicU64,
    started: Instant,
    /// The run's wall time, if it is limited.
    limit: Option<Duration>,
    trajectories: Mutex<Trajectories>,
    trace: Option<Mutex<BufWriter<File>>>,
    trace_error: Mutex<Option<std::io::Error>>,
}

/// Creates the trace file.
pub fn create_trace(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path)
        .with_context(|| format!("--trace {}: cannot be written", path.display()))?;
    Ok(BufWriter::new(file))
}

impl Live {
    /// The display of a run that has not begun.
    pub fn new(plan: &RunPlan, expected: Expected, trace: Option<BufWriter<File>>) -> Arc<Self> {
        let is_watched = is_stderr_terminal();
        let (Expected::About(steps) | Expected::AtMost(steps)) = expected;
        let bar = if is_watched { ProgressBar::new(steps) } else { ProgressBar::hidden() };

        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .expect("invariant: the template is well formed"),
        );

        bar.enable_steady_tick(Duration::from_millis(100));

        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            bar,
            is_watched,
            expected,
            fanout: plan.fanout.into(),
            max_rounds: plan.max_rounds,
            round: AtomicU64::new(1),
            steps: AtomicU64::new(0),
            steps_round: AtomicU32::new(1),
            ended: AtomicU64::new(0),
            due_ms: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            backtracks: AtomicU64::new(0),
            mishaps: AtomicU64::new(0),
            located: AtomicU64::new(0),
            reviews_needed: AtomicU64::new(0),
            started: Instant::now(),
            limit: (plan.budget.wall_ms < WALL_MS_SHOWN_MAX)
                .then(|| Duration::from_millis(plan.budget.wall_ms)),
            trajectories: Mutex::default(),
            trace: trace.map(Mutex::new),
            trace_error: Mutex::default(),
        })
    }

    /// Committed steps of the longest trajectory of the last round.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Steps that need review.
    pub fn reviews_needed(&self) -> u64 {
        self.reviews_needed.load(Ordering::Relaxed)
    }

    /// The first failure to write the trace file.
    pub fn take_trace_error(&self) -> Option<std::io::Error> {
        self.trace_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn write(&self, event: &Event<'_>) -> std::io::Result<()> {
        let Some(trace) = &self.trace else { return Ok(()) };

        let mut file = trace.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_writer(&mut *file, &TraceLine::of(event))?;
        file.write_all(b"\n")?;
        if matches!(event, Event::Finished(_)) { file.flush() } else { Ok(()) }
    }

    /// Writes a line on standard error, above the live line.
    fn note(&self, text: &str) {
        self.bar.suspend(|| note!("{text}"));
    }

    fn mishap(&self, text: &str) {
        if self.mishaps.fetch_add(1, Ordering::Relaxed) < MISHAPS_SHOWN {
            self.note(text);
        }
    }

    /// Says where a locator found the fault of a refuted trajectory.
    fn located(&self, id: TurnId, located: &Located) {
        if self.located.fetch_add(1, Ordering::Relaxed) < LOCATED_SHOWN {
            let TurnId { round, trajectory } = id;
            self.note(&format!("trajectory {trajectory} of round {round} is refuted: {located}"));
        }
    }

    /// True if the status is to be shown again; then the next time is `PAUSE` later.
    fn is_due(&self) -> bool {
        if !self.is_watched {
            return false;
        }

        let pause = if self.bar.is_hidden() { PLAIN_PAUSE } else { PAUSE };
        let elapsed = self.started.elapsed();
        let due = self.due_ms.load(Ordering::Relaxed);
        if elapsed.as_millis() < due.into() {
            return false;
        }
        // Only one of several threads shows it.
        let next = u64::try_from((elapsed + pause).as_millis()).unwrap_or(u64::MAX);
        self.due_ms.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn trajectories(&self) -> MutexGuard<'_, Trajectories> {
        self.trajectories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self) {
        if !self.is_watched {
            return;
        }

        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let trajectories = self.trajectories();
        let status = Status {
            steps: get(&self.steps),
            expected: self.expected,
            elapsed: self.started.elapsed(),
            limit: self.limit,
            round: get(&self.round),
            max_rounds: self.max_rounds,
            ended: get(&self.ended).min(self.fanout),
            fanout: self.fanout,
            retries: get(&self.retries),
            backtracks: get(&self.backtracks),
            trajectories: &trajectories,
        };

        if self.bar.is_hidden() {
            note!("{}", status.line());
        } else {
            // The spinner and a blank stand before the first line.
            let columns = stderr_columns().unwrap_or(80).saturating_sub(2);
            self.bar.set_message(status.lines(columns));
        }
    }

    /// Shows what a model is writing.
    fn wrote(&self, id: TurnId, role: Role, writing: &Writing) {
        self.trajectories().wrote(id, role, writing);
        if self.is_due() {
            self.show();
        }
    }

    fn judged(&self, depth: usize, decision: Decision) {
        match decision {
            Decision::Proceed => {
                self.steps.fetch_max(depth as u64 + 1, Ordering::Relaxed);
            }
            Decision::Retry => {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
            Decision::Backtrack => {
                self.backtracks.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Live {
    /// A run that ends early leaves no line on the terminal.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Live {
    fn listener(&self, id: TurnId, role: Role) -> Option<Listener> {
        // Lines below each other, as elsewhere than on a terminal, would be too many.
        if !self.is_watched || self.bar.is_hidden() {
            return None;
        }
        let live = Weak::clone(&self.me);
        Some(Arc::new(move |writing| {
            if let Some(live) = live.upgrade() {
                live.wrote(id, role, &writing);
            }
        }))
    }

    fn observe(&self, event: &Event<'_>) {
        // Only the first failure counts, and the run continues without its trace.
        if let Err(error) = self.write(event) {
            self.trace_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }

        match event {
            Event::Step { id, depth, decision, located, verdict, proposal, .. } => {
                // A new round starts from nothing.
                if self.steps_round.swap(id.round, Ordering::Relaxed) != id.round {
                    self.steps.store(0, Ordering::Relaxed);
                }

                self.reviews_needed.fetch_add(u64::from(verdict.needs_review), Ordering::Relaxed);

                if let Some(located) = located {
                    self.located(*id, located);
                }
                self.judged(*depth, *decision);
                if self.is_watched {
                    let reason = verdict.feedback.as_deref();
                    self.trajectories().settled(*id, *depth, &proposal.line, reason, *decision);
                    if self.is_due() {
                        self.show();
                    }
                }
            }
            Event::TrajectoryEnded { id, .. } => {
                self.ended.fetch_add(1, Ordering::Relaxed);
                self.trajectories().ended(*id);
                self.show();
            }
            Event::Voted { round, winner, agreement } => {
                let votes = count(winner.map_or(0, |winner| winner.votes.into()), "vote");
                if !self.bar.is_hidden() {
                    self.note(&format!(
                        "round {round}: {votes} for the winner, agreement {agreement:.2}"
                    ));
                }

                self.round.store(u64::from(*round) + 1, Ordering::Relaxed);
                self.ended.store(0, Ordering::Relaxed);
                self.trajectories().next_round();
            }
            Event::Mishap { id, role, error, mishaps, .. } => self.mishap(&format!(
                "trajectory {} of round {}: the {role} failed ({}, {}): {error}; retrying",
                id.trajectory,
                id.round,
                error.failure.name(),
                count((*mishaps).into(), "time"),
            )),
            Event::TurnFailed { id, role, failure, reason, .. } => self.mishap(&format!(
                "trajectory {} of round {} ends: the {role} failed ({}): {reason}",
                id.trajectory,
                id.round,
                failure.name(),
            )),
            Event::Finished(_) => {
                self.bar.finish_and_clear();

                for (counter, shown, what) in [
                    (&self.mishaps, MISHAPS_SHOWN, "more failure"),
                    (&self.located, LOCATED_SHOWN, "more refuted trace"),
                ] {
                    let hidden = counter.load(Ordering::Relaxed).saturating_sub(shown);
                    if hidden > 0 {
                        let hidden = count(hidden, what);
                        self.note(&format!("and {hidden} (--trace FILE records all)"));
                    }
                }
            }
            // A run in the foreground holds no steps.
            Event::Waiting { .. }
            | Event::Started { .. }
            | Event::Chosen { .. }
            | Event::Stopped { .. } => {}
        }
    }
}
