//! Progress of long commands on standard error, and what is left of them when they are asked to stop.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::interrupt::{Stop, Stops};
use super::output::{count, plural, write_note};

/// How often the elapsed time is drawn.
const TICK: Duration = Duration::from_millis(500);

/// A bar with rate and time left on standard error; hidden where that is no terminal. Never wider
/// than the terminal.
pub fn bar(total: u64, unit: &'static str) -> ProgressBar {
    let style = style("{wide_bar} {pos}/{len} {msg}, {rate}, {eta} left");
    let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
        // A progress bar has no place for an error.
        write!(text, "{:.0}/s", state.per_sec()).unwrap_or_default();
    };
    ProgressBar::new(total).with_message(plural(unit)).with_style(style.with_key("rate", rate))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("invariant: the template is valid")
}

/// What is done of a bar's work, for a command that is asked to stop.
pub fn interrupted(bar: &ProgressBar, unit: &str) -> String {
    let done = bar.position();
    bar.finish_and_clear();
    interrupted_after(done, bar.length().unwrap_or(done), unit)
}

fn interrupted_after(done: u64, total: u64, unit: &str) -> String {
    format!("interrupted after {done} of {}", count(total, unit))
}

/// Units of work that end early when the command is asked to stop: what is complete is kept. Must be used within a Tokio
/// runtime.
pub struct Session {
    bar: ProgressBar,
    total: u64,
    done: u64,
    unit: &'static str,
    /// The bar's units in one unit of work.
    parts: u64,
    stops: Stops,
    stop: Option<Stop>,
}

impl Session {
    /// # Errors
    /// When the signals cannot be handled.
    pub fn start(total: usize, unit: &'static str) -> anyhow::Result<Self> {
        Self::with_parts(total, unit, 1, unit)
    }

    /// Starts a session whose bar shows parts, of which each unit has the given number.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub fn with_parts(
        total: usize,
        unit: &'static str,
        parts: u32,
        part: &'static str,
    ) -> anyhow::Result<Self> {
        let stops = Stops::listen()?;
        let (total, parts) = (total as u64, u64::from(parts));

        let bar = bar(total * parts, part);
        bar.set_style(style("{wide_bar} {pos}/{len} {msg}, {elapsed} elapsed, {eta} left"));
        bar.enable_steady_tick(TICK);
        Ok(Self { bar, total, done: 0, unit, parts, stops, stop: None })
    }

    /// Returns a function to call after each part of a unit.
    pub fn on_part(&self) -> impl Fn() + use<> {
        let bar = self.bar.clone();
        move || bar.inc(1)
    }

    /// Does the next unit of work; `None` once the command was asked to stop.
    ///
    /// # Errors
    /// The work's.
    pub async fn next<T>(
        &mut self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        if self.stop.is_some() {
            return Ok(None);
        }

        let result = tokio::select! {
            // A request to stop counts even if the work ends at the same moment.
            biased;
            stop = self.stops.next() => {
                self.stop = Some(stop);
                return Ok(None);
            }
            result = work => result?,
        };

        self.done += 1;
        self.bar.set_position(self.done * self.parts);
        Ok(Some(result))
    }

    /// Writes a line above the bar.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| write_note(format_args!("{line}")));
    }

    /// Removes the bar; says how much is done if that is not all.
    pub fn finish(self) -> Finished {
        self.bar.finish_and_clear();
        Finished(self.stop.map(|stop| (stop, interrupted_after(self.done, self.total, self.unit))))
    }
}

/// How a session ended.
#[must_use]
pub struct Finished(Option<(Stop, String)>);

impl Finished {
    /// What readers of the result must know.
    pub fn note(&self) -> Option<&str> {
        self.0.as_ref().map(|(_, note)| note.as_str())
    }

    pub fn exit_code(&self) -> ExitCode {
        match &self.0 {
            Some((stop, note)) => {
                write_note(format_args!("{note}"));
                ExitCode::from(stop.exit_code())
            }
            None => ExitCode::SUCCESS,
        }
    }
}
