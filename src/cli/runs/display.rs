//! What is shown of a run while it is watched: one line that changes, a line an event, or nothing.

use std::io::{BufWriter, IsTerminal as _, StdoutLock, Write};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::run::Output;

/// An event of a run as the daemon sent it.
pub struct Numbered<'a> {
    pub seq: u64,
    pub name: &'a str,
    /// A JSON object.
    pub line: &'a str,
}

/// See the module.
pub enum Display {
    Progress(Progress),
    Lines(Lines),
    Quiet,
}

impl Display {
    /// Progress where a person looks at text on a terminal, a line an event otherwise.
    pub fn of_watch(output: Output) -> Self {
        let is_watched = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        if output == Output::Text && is_watched {
            Self::Progress(Progress::new())
        } else {
            Self::Lines(Lines { output, out: BufWriter::new(std::io::stdout().lock()) })
        }
    }

    /// Progress where a person looks, nothing otherwise.
    pub fn of_wait() -> Self {
        if std::io::stderr().is_terminal() { Self::Progress(Progress::new()) } else { Self::Quiet }
    }

    /// Shows an event.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn event(&mut self, event: &Numbered<'_>) -> std::io::Result<()> {
        match self {
            Self::Progress(progress) => progress.event(event),
            Self::Lines(lines) => return lines.event(event),
            Self::Quiet => {}
        }
        Ok(())
    }

    /// Nothing more may come for a while: what was shown must be seen.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn rest(&mut self) -> std::io::Result<()> {
        if let Self::Lines(lines) = self { lines.out.flush() } else { Ok(()) }
    }

    /// Says something about the watching itself, on standard error.
    pub fn note(&self, text: &str) {
        match self {
            Self::Progress(progress) => progress.bar.println(text),
            Self::Lines(_) | Self::Quiet => eprintln!("{text}"),
        }
    }

    /// The run is over; gives whether its record was shown.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn finish(self, record: &Value) -> anyhow::Result<bool> {
        match self {
            Self::Progress(progress) => {
                progress.bar.finish_and_clear();
                Ok(false)
            }
            Self::Lines(mut lines) => {
                lines.result(record).context("standard output cannot be written")?;
                Ok(true)
            }
            Self::Quiet => Ok(false),
        }
    }
}

/// A line an event on standard output.
pub struct Lines {
    output: Output,
    out: BufWriter<StdoutLock<'static>>,
}

impl Lines {
    fn event(&mut self, event: &Numbered<'_>) -> std::io::Result<()> {
        let Numbered { seq, line, .. } = event;
        match self.output {
            // As a trace has it.
            Output::Json => writeln!(self.out, r#"{{"seq":{seq},{}"#, line.strip_prefix('{').unwrap_or(line)),
            Output::Text => writeln!(self.out, "{}", described(event)),
        }
    }

    fn result(&mut self, record: &Value) -> std::io::Result<()> {
        match self.output {
            Output::Json => writeln!(self.out, r#"{{"event":"result","record":{record}}}"#)?,
            Output::Text => {
                let cell = |name: &str| record[name].to_string();
                let names = ["id", "status", "outcome", "verified", "events", "steps", "proposals", "wall_ms"];
                write!(self.out, "result")?;
                names.iter().try_for_each(|name| write!(self.out, " {name}={}", cell(name)))?;
                writeln!(self.out)?;
            }
        }
        self.out.flush()
    }
}

/// Fields that are long, or say nothing to a person; JSON has them.
const HIDDEN: [&str; 6] = ["event", "tokens", "logprobs", "derivation", "usage", "applicable"];

/// An event for a person: number, name, and `field=value` for the rest, whatever the event.
fn described(event: &Numbered<'_>) -> String {
    let fields: Map<String, Value> = serde_json::from_str(event.line).unwrap_or_default();
    let mut text = format!("{} {}", event.seq, event.name);
    for (name, value) in fields.iter().filter(|(name, _)| !HIDDEN.contains(&name.as_str())) {
        text += &format!(" {name}={value}");
    }
    if fields.get("applicable") == Some(&Value::Bool(false)) {
        text += " applicable=false";
    }
    text
}

/// What of a step is counted.
#[derive(Deserialize)]
struct Step {
    round: u32,
    #[serde(default)]
    depth: u64,
    decision: String,
}

/// A line that changes, on standard error.
pub struct Progress {
    bar: ProgressBar,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    round: u32,
    steps: u64,
    retries: u64,
    backtracks: u64,
}

impl Counts {
    fn see(&mut self, step: &Step) {
        if step.round > self.round {
            self.round = step.round;
            self.steps = 0;
        }
        match step.decision.as_str() {
            "proceed" => self.steps = self.steps.max(step.depth + 1),
            "retry" => self.retries += 1,
            _ => self.backtracks += 1,
        }
    }

    fn text(&self) -> String {
        let Self { round, retries, backtracks, .. } = self;
        format!("· round {round} · {retries} retries · {backtracks} backtracks")
    }
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {pos} steps {msg}")
                .expect("invariant: the template is well formed"),
        );
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, counts: Counts::default() }
    }

    fn event(&mut self, event: &Numbered<'_>) {
        if event.name == "step" {
            if let Ok(step) = serde_json::from_str(event.line) {
                self.counts.see(&step);
                self.bar.set_position(self.counts.steps);
                self.bar.set_message(self.counts.text());
            }
        } else if matches!(event.name, "voted" | "resumed" | "turn_failed") {
            self.bar.println(described(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_with_its_number_and_what_it_says() {
        let rows = [
            ("started", r#"{"event":"started"}"#, "7 started"),
            (
                "step",
                r#"{"event":"step","round":1,"action":"a\nb","applicable":true,"tokens":[1],"decision":"proceed"}"#,
                r#"7 step round=1 action="a\nb" decision="proceed""#,
            ),
            ("step", r#"{"event":"step","applicable":false}"#, "7 step applicable=false"),
            ("of_tomorrow", r#"{"event":"of_tomorrow","x":{"y":null}}"#, r#"7 of_tomorrow x={"y":null}"#),
        ];
        for (name, line, expected) in rows {
            assert_eq!(described(&Numbered { seq: 7, name, line }), expected);
        }
    }

    #[test]
    fn progress_counts_the_furthest_trajectory_of_the_round() {
        let mut counts = Counts::default();
        let rows = [(1, 0, "proceed"), (1, 1, "proceed"), (1, 0, "proceed"), (1, 2, "retry"), (1, 2, "backtrack")];
        for (round, depth, decision) in rows {
            counts.see(&Step { round, depth, decision: decision.to_owned() });
        }
        assert_eq!((counts.steps, counts.text().as_str()), (2, "· round 1 · 1 retries · 1 backtracks"));
        counts.see(&Step { round: 2, depth: 0, decision: "proceed".to_owned() });
        assert_eq!((counts.steps, counts.text().as_str()), (1, "· round 2 · 1 retries · 1 backtracks"));
    }
}
