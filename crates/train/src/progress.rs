//! The progress of a run as the user sees it, and its clock: a bar on a terminal, a plain line
//! every few seconds elsewhere. The only file in this crate that reads the wall clock.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use super::evaluate::Accuracy;

const LOG_EVERY: Duration = Duration::from_secs(15);

/// Length of the bar: the budget in these units.
const UNITS: u64 = 10_000;

pub struct Progress {
    started: Instant,
    /// Seconds that earlier parts of a resumed run took.
    before_s: f64,
    bar: Option<ProgressBar>,
    logged: Instant,
    tokens_logged: u64,
    loss: Option<f64>,
    exact: Option<f64>,
}

/// The figures of a step that are shown.
pub struct Status {
    pub step: u64,
    /// Fraction of the budget.
    pub spent: f64,
    pub loss: f64,
    /// Fraction of the step's training samples that were entirely right.
    pub exact: f64,
    pub tokens: u64,
    pub rate: f64,
    pub gradient_norm: f64,
}

impl Progress {
    pub fn start(before_s: f64, tokens: u64) -> Self {
        let now = Instant::now();
        #[expect(clippy::disallowed_methods, reason = "asks, and writes nothing")]
        let is_terminal = std::io::stderr().is_terminal();
        let bar = is_terminal.then(|| {
            let style = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}")
                .expect("invariant: the template is valid");
            let bar =
                ProgressBar::with_draw_target(Some(UNITS), ProgressDrawTarget::stderr_with_hz(4));
            bar.with_style(style)
        });

        Self {
            started: now,
            before_s,
            bar,
            logged: now,
            tokens_logged: tokens,
            loss: None,
            exact: None,
        }
    }

    /// Seconds of training, over all parts of the run.
    pub fn elapsed_s(&self) -> f64 {
        self.before_s + self.started.elapsed().as_secs_f64()
    }

    /// Counts a step, and shows it if the last one shown is long enough ago. Returns the smoothed
    /// loss and share of exact samples if it does.
    pub fn step(&mut self, status: &Status) -> Option<[f64; 2]> {
        let smooth = |old: Option<f64>, new: f64| old.map_or(new, |old| 0.98 * old + 0.02 * new);
        let (loss, exact) = (smooth(self.loss, status.loss), smooth(self.exact, status.exact));
        (self.loss, self.exact) = (Some(loss), Some(exact));

        let since = self.logged.elapsed();
        if since < if self.bar.is_some() { Duration::from_secs(1) } else { LOG_EVERY } {
            return None;
        }

        let speed = (status.tokens - self.tokens_logged) as f64 / since.as_secs_f64();
        (self.logged, self.tokens_logged) = (Instant::now(), status.tokens);

        let elapsed = self.elapsed_s();
        let left = elapsed / status.spent.max(1e-9) * (1.0 - status.spent).max(0.0);
        let line = format!(
            "step {} loss {loss:.4} exact {:.1}% lr {:.2e} grad {:.2} {speed:.0} tok/s, {} left",
            status.step,
            exact * 100.0,
            status.rate,
            status.gradient_norm,
            clock(left)
        );

        match &self.bar {
            Some(bar) => {
                bar.set_position((status.spent * UNITS as f64) as u64);
                bar.set_message(line);
            }
            None => eprintln!("{} {:5.1}% {line}", clock(elapsed), status.spent * 100.0),
        }

        Some([loss, exact])
    }

    pub fn evaluation(&self, step: u64, results: &[Accuracy], seconds: f64) {
        let mean = results.iter().map(Accuracy::rate).sum::<f64>() / results.len().max(1) as f64;
        let mut worst: Vec<&Accuracy> = results.iter().collect();
        worst.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let tasks: Vec<String> = worst
            .iter()
            .map(|result| format!("{} {:.1}", result.task, result.rate() * 100.0))
            .collect();

        let samples = results.first().map_or(0, |result| result.samples);
        self.line(&format!(
            "{} eval step {step}: mean {:.2}% of {samples} per task in {seconds:.1} s | {}",
            clock(self.elapsed_s()),
            mean * 100.0,
            tasks.join(", ")
        ));
    }

    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 360_000.0) as u64;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
