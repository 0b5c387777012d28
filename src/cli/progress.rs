//! Progress of long commands on standard error, and what is left of them after Ctrl-C.

use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::output::{count, write_note};

/// Exit code after Ctrl-C, as shells report SIGINT.
const INTERRUPTED: u8 = 130;

/// A bar with rate and time left on standard error; hidden where that is no terminal. Never wider than the terminal.
pub fn bar(total: u64, unit: &'static str) -> ProgressBar {
    let style = "{wide_bar} {pos}/{len} {msg}, {per_sec}, {eta} left";
    let bar = ProgressBar::new(total).with_message(unit);
    bar.set_style(ProgressStyle::with_template(style).expect("invariant: the template is valid"));
    bar
}

/// Units of work that Ctrl-C ends early: what is complete is kept. Must be used within a Tokio runtime.
pub struct Session {
    bar: ProgressBar,
    total: u64,
    done: u64,
    unit: &'static str,
    interrupts: Signal,
    is_interrupted: bool,
}

impl Session {
    /// # Errors
    /// When SIGINT cannot be handled.
    pub fn start(total: usize, unit: &'static str) -> anyhow::Result<Self> {
        let interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be handled")?;
        let bar = bar(total as u64, unit);
        let style = "{wide_bar} {pos}/{len} {msg}, {elapsed} elapsed, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("invariant: the template is valid"));
        bar.tick();
        Ok(Self { bar, total: total as u64, done: 0, unit, interrupts, is_interrupted: false })
    }

    /// Does the next unit of work; `None` after Ctrl-C.
    ///
    /// # Errors
    /// The work's.
    pub async fn next<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<Option<T>> {
        if self.is_interrupted {
            return Ok(None);
        }
        let result = tokio::select! {
            biased;
            _ = self.interrupts.recv() => {
                self.is_interrupted = true;
                return Ok(None);
            }
            result = work => result?,
        };
        self.done += 1;
        self.bar.inc(1);
        Ok(Some(result))
    }

    /// Writes a line above the bar.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| write_note(format_args!("{line}")));
    }

    /// Removes the bar; says how much is done if that is not all.
    pub fn finish(self) -> Finished {
        self.bar.finish_and_clear();
        let done = || format!("interrupted after {} of {}", self.done, count(self.total, self.unit));
        Finished(self.is_interrupted.then(done))
    }
}

/// How a session ended.
#[must_use]
pub struct Finished(Option<String>);

impl Finished {
    /// What readers of the result must know.
    pub fn note(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub fn exit_code(&self) -> ExitCode {
        match &self.0 {
            Some(note) => {
                write_note(format_args!("{note}"));
                ExitCode::from(INTERRUPTED)
            }
            None => ExitCode::SUCCESS,
        }
    }
}
