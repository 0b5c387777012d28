//! Progress of long commands on standard error, and what is left of them when they are asked to stop.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::interrupt::{Stop, Stops};
use super::output::{count, plural, write_note};

/// How often the elapsed time is drawn.
const TICK: Duration = Duration::from_millis(500);

/// A bar with rate and time left on standard error; hidden where that is not a terminal. Never
/// wider than the terminal.
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

/// Parts after which the time of a long measurement is estimated.
const ESTIMATED_AFTER: u64 = 16;

/// Longest measurement, in parts, that nobody needs an estimate for.
const SHORT: u64 = 100;

/// How long a measurement will take, from its first parts.
fn estimate(done: u64, total: u64, elapsed: Duration, part: &str) -> String {
    let left = elapsed.mul_f64((total - done) as f64 / done as f64);
    format!(
        "{done} of {} in {:.0} s: about {} left at this pace",
        count(total, part),
        elapsed.as_secs_f64(),
        in_words(left)
    )
}

/// A time with one unit, rounded up.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil();
    if seconds <= 120.0 {
        format!("{seconds} s")
    } else if seconds <= 7_200.0 {
        format!("{} min", (seconds / 60.0).ceil())
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
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
    done: usize,
    unit: &'static str,
    /// The parts of each unit of work, which the bar shows.
    parts: Vec<u64>,
    part: &'static str,
    stops: Stops,
    stop: Option<Stop>,
}

impl Session {
    /// # Errors
    /// When the signals cannot be handled.
    pub fn start(total: usize, unit: &'static str) -> anyhow::Result<Self> {
        Self::with_parts(vec![1; total], unit, unit)
    }

    /// Starts a session whose bar shows parts; each unit has a number of them.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub fn with_parts(
        parts: Vec<u64>,
        unit: &'static str,
        part: &'static str,
    ) -> anyhow::Result<Self> {
        let stops = Stops::listen()?;

        let bar = bar(parts.iter().sum(), part);
        bar.set_style(style("{wide_bar} {pos}/{len} {msg}, {elapsed} elapsed, {eta} left"));
        bar.enable_steady_tick(TICK);
        Ok(Self { bar, done: 0, unit, parts, part, stops, stop: None })
    }

    /// Returns a function to call after each part of a unit. After the first parts of a long
    /// measurement, it says how long the rest will take.
    pub fn on_part(&self) -> impl Fn() + use<> {
        let (bar, part, total) = (self.bar.clone(), self.part, self.parts.iter().sum());
        move || {
            bar.inc(1);
            let done = bar.position();
            if done == ESTIMATED_AFTER && total > SHORT {
                let line = estimate(done, total, bar.elapsed(), part);
                bar.suspend(|| write_note(format_args!("{line}")));
            }
        }
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
        self.bar.set_position(self.parts.iter().take(self.done).sum());
        Ok(Some(result))
    }

    /// Writes a line above the bar.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| write_note(format_args!("{line}")));
    }

    /// Removes the bar; says how much is done if that is not all.
    pub fn finish(self) -> Finished {
        self.bar.finish_and_clear();
        let (done, total) = (self.done as u64, self.parts.len() as u64);
        Finished(self.stop.map(|stop| (stop, interrupted_after(done, total, self.unit))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_first_parts_did() {
        let after = |seconds| estimate(16, 1_616, Duration::from_secs(seconds), "run");
        // A hundred times as many are left.
        assert_eq!(after(1), "16 of 1616 runs in 1 s: about 100 s left at this pace");
        assert_eq!(after(60), "16 of 1616 runs in 60 s: about 100 min left at this pace");
        assert_eq!(after(360), "16 of 1616 runs in 360 s: about 10.0 h left at this pace");
    }

    #[test]
    fn times_are_rounded_up_to_their_unit() {
        let rows = [(120.0, "120 s"), (120.5, "3 min"), (7_200.0, "120 min"), (7_201.0, "2.0 h")];
        for (seconds, text) in rows {
            assert_eq!(in_words(Duration::from_secs_f64(seconds)), text);
        }
    }
}
