//! A run in progress: a live line on standard error, and the trace file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::cli::output::{count, is_stderr_terminal, note};
use prime_printable::printable_line;
use prime_protocol::{Decision, RunPlan};
use prime_report::TraceLine;
use prime_runtime::{Event, Observer};

/// Wall times of a month or more are not shown: to somebody who watches, they are no limit.
const WALL_MS_SHOWN_MAX: u64 = 30 * 24 * 3_600_000;

/// Mishaps that are shown; further ones are only counted.
const MISHAPS_SHOWN: u64 = 5;

/// Counts for the live line, and the trace file.
pub struct Live {
    bar: ProgressBar,
    fanout: u64,
    max_rounds: u32,
    round: AtomicU64,
    /// Committed steps of the longest trajectory of the round `steps_round`.
    steps: AtomicU64,
    steps_round: AtomicU32,
    ended: AtomicU64,
    judged: AtomicU64,
    retries: AtomicU64,
    backtracks: AtomicU64,
    mishaps: AtomicU64,
    reviews_needed: AtomicU64,
    started: Instant,
    /// The run's wall time, if it is limited.
    limit: Option<Duration>,
    /// The last rejected line, its step and the reason.
    rejected: Mutex<String>,
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
    /// The display of a run that has not begun; `steps_max` is the length of the longest valid
    /// trace.
    pub fn new(plan: &RunPlan, steps_max: u64, trace: Option<BufWriter<File>>) -> Self {
        let bar =
            if is_stderr_terminal() { ProgressBar::new(steps_max) } else { ProgressBar::hidden() };

        bar.set_style(
            ProgressStyle::with_template(
                "{spinner} step {pos}/{len}, at most {eta} left {wide_msg}",
            )
            .expect("invariant: the template is well formed"),
        );

        bar.enable_steady_tick(Duration::from_millis(100));

        Self {
            bar,
            fanout: plan.fanout.into(),
            max_rounds: plan.max_rounds,
            round: AtomicU64::new(1),
            steps: AtomicU64::new(0),
            steps_round: AtomicU32::new(1),
            ended: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            backtracks: AtomicU64::new(0),
            mishaps: AtomicU64::new(0),
            reviews_needed: AtomicU64::new(0),
            started: Instant::now(),
            limit: (plan.budget.wall_ms < WALL_MS_SHOWN_MAX)
                .then(|| Duration::from_millis(plan.budget.wall_ms)),
            rejected: Mutex::default(),
            trace: trace.map(Mutex::new),
            trace_error: Mutex::default(),
        }
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

    fn show(&self) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);

        let elapsed = self.started.elapsed().as_secs();
        let time = match self.limit {
            Some(limit) => format!("{elapsed} of {} s", limit.as_secs()),
            None => format!("{elapsed} s"),
        };

        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);

        self.bar.set_message(format!(
            "· {time} · round {}/{} · {}/{} ended · {} · {}{rejected}",
            get(&self.round),
            self.max_rounds,
            get(&self.ended).min(self.fanout),
            self.fanout,
            count(get(&self.retries), "retry"),
            count(get(&self.backtracks), "backtrack"),
        ));
    }

    fn judged(&self, depth: usize, decision: Decision) {
        match decision {
            Decision::Proceed => {
                let steps = depth as u64 + 1;
                if self.steps.fetch_max(steps, Ordering::Relaxed) < steps {
                    self.bar.set_position(steps);
                }
            }
            Decision::Retry => {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
            Decision::Backtrack => {
                self.backtracks.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Not at each step: fast runs would spend their time on the terminal.
        if self.judged.fetch_add(1, Ordering::Relaxed).is_multiple_of(16) {
            self.show();
        }
    }

    fn rejected(&self, depth: usize, line: &str, reason: Option<&str>) {
        if !self.bar.is_hidden() {
            let text = format!(
                " · rejected at step {}: {line}: {}",
                depth + 1,
                reason.unwrap_or("no reason given")
            );
            *self.rejected.lock().unwrap_or_else(PoisonError::into_inner) =
                printable_line(&text).into_owned();
        }
    }
}

impl Observer for Live {
    fn observe(&self, event: &Event<'_>) {
        // Only the first failure counts, and the run continues without its trace.
        if let Err(error) = self.write(event) {
            self.trace_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }

        match event {
            Event::Step { id, depth, decision, verdict, proposal, .. } => {
                // A new round starts from nothing.
                if self.steps_round.swap(id.round, Ordering::Relaxed) != id.round {
                    self.steps.store(0, Ordering::Relaxed);
                }

                self.reviews_needed.fetch_add(u64::from(verdict.needs_review), Ordering::Relaxed);

                if *decision == Decision::Backtrack {
                    self.rejected(*depth, &proposal.line, verdict.feedback.as_deref());
                }

                self.judged(*depth, *decision);
            }
            Event::TrajectoryEnded { .. } => {
                self.ended.fetch_add(1, Ordering::Relaxed);
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
                self.bar.set_position(0);
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

                let hidden = self.mishaps.load(Ordering::Relaxed).saturating_sub(MISHAPS_SHOWN);
                if hidden > 0 {
                    self.note(&format!(
                        "and {} (--trace FILE records all)",
                        count(hidden, "more failure")
                    ));
                }
            }
            Event::Started { .. } | Event::Chosen { .. } | Event::Stopped { .. } => {}
        }
    }
}
