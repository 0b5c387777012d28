//! What `runs watch` and `runs submit --wait` show: live lines, a line for each event, or nothing.

use std::io::{BufWriter, StdoutLock, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::output::{
    Output, count, is_stderr_terminal, is_stdout_terminal, note, stderr_columns, stdout, written,
};
use crate::cli::trajectories::Trajectories;
use prime_printable::Printable;
use prime_protocol::{Decision, TurnId};

/// An event as the daemon sent it.
pub struct Numbered<'a> {
    pub seq: u64,
    pub name: &'a str,
    /// A JSON object.
    pub line: &'a str,
}

pub enum Display {
    Progress(Progress),
    Lines(Lines),
    Quiet,
}

impl Display {
    /// Live lines on a terminal, a line for each event otherwise.
    pub fn of_watch(output: Output) -> Self {
        let is_watched = is_stdout_terminal() && is_stderr_terminal();
        if output == Output::Text && is_watched {
            Self::Progress(Progress::new())
        } else {
            Self::Lines(Lines { output, out: BufWriter::new(stdout()) })
        }
    }

    /// Live lines on a terminal, nothing otherwise.
    pub fn of_wait() -> Self {
        if is_stderr_terminal() { Self::Progress(Progress::new()) } else { Self::Quiet }
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

    /// Shows all events so far, because the next one may take time.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Progress(progress) => progress.show(),
            Self::Lines(lines) => return lines.out.flush(),
            Self::Quiet => {}
        }
        Ok(())
    }

    /// Writes a note on standard error.
    pub fn note(&self, text: &str) {
        match self {
            Self::Progress(progress) => progress.bar.suspend(|| note!("{text}")),
            Self::Lines(_) | Self::Quiet => note!("{text}"),
        }
    }

    /// Shows the end of the run. Returns whether its record was shown.
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
                written(lines.result(record))?;
                Ok(true)
            }
            Self::Quiet => Ok(false),
        }
    }
}

/// A line for each event, on standard output.
pub struct Lines {
    output: Output,
    out: BufWriter<Printable<StdoutLock<'static>>>,
}

impl Lines {
    fn event(&mut self, event: &Numbered<'_>) -> std::io::Result<()> {
        let Numbered { seq, line, .. } = event;
        match self.output {
            // The form of traces.
            Output::Json => {
                writeln!(self.out, r#"{{"seq":{seq},{}"#, line.strip_prefix('{').unwrap_or(line))
            }
            Output::Text => writeln!(self.out, "{}", described(event)),
        }
    }

    fn result(&mut self, record: &Value) -> std::io::Result<()> {
        match self.output {
            Output::Json => writeln!(self.out, r#"{{"event":"result","record":{record}}}"#)?,
            Output::Text => {
                let cell = |name: &str| record[name].to_string();
                let names = [
                    "id",
                    "status",
                    "outcome",
                    "verified",
                    "events",
                    "steps",
                    "proposals",
                    "wall_ms",
                ];
                write!(self.out, "result")?;
                names.iter().try_for_each(|name| write!(self.out, " {name}={}", cell(name)))?;
                writeln!(self.out)?;
            }
        }
        self.out.flush()
    }
}

/// Fields that are too long for people; JSON has them.
const HIDDEN: [&str; 7] =
    ["event", "tokens", "logprobs", "derivation", "reasoning", "usage", "applicable"];

/// An event for a person: number, name, and `field=value` for each other field.
fn described(event: &Numbered<'_>) -> String {
    let fields: Map<String, Value> = serde_json::from_str(event.line).unwrap_or_default();
    let mut text = format!("{} {}", event.seq, event.name);
    for (name, value) in fields.iter().filter(|(name, _)| !HIDDEN.contains(&name.as_str())) {
        text += &format!(" {name}={value}");
    }

    // Hidden above, because a step that cannot be applied is the exception.
    if fields.get("applicable") == Some(&Value::Bool(false)) {
        text += " applicable=false";
    }

    text
}

/// The fields of a step that are shown.
#[derive(Deserialize)]
struct Step {
    round: u32,
    #[serde(default)]
    trajectory: u32,
    #[serde(default)]
    depth: u64,
    #[serde(default)]
    action: String,
    feedback: Option<String>,
    decision: Decision,
}

/// The fields of a step that waits for approval that are shown.
#[derive(Deserialize)]
struct Waiting {
    round: u32,
    trajectory: u32,
    depth: u64,
    action: String,
    approval_number: u32,
}

/// A step that waits for approval, for a person who may decide.
fn waiting_text(waiting: &Waiting) -> String {
    let Waiting { round, trajectory, depth, action, approval_number } = waiting;
    format!(
        "waiting for approval {approval_number}: `{action}` ({round}/{trajectory}/{depth}); \
         `prime-agents runs approve` or `reject` decides"
    )
}

/// The fields of the end of a trajectory that are shown.
#[derive(Deserialize)]
struct TrajectoryEnd {
    round: u32,
    trajectory: u32,
}

/// Live lines on standard error.
pub struct Progress {
    bar: ProgressBar,
    counts: Counts,
    trajectories: Trajectories,
    /// Trajectories of a round, as far as they were seen.
    fanout: u64,
}

#[derive(Default)]
struct Counts {
    round: u32,
    steps: u64,
    retries: u64,
    backtracks: u64,
}

impl Counts {
    fn add(&mut self, step: &Step) {
        if step.round > self.round {
            self.round = step.round;
            self.steps = 0;
        }

        match step.decision {
            Decision::Proceed => self.steps = self.steps.max(step.depth + 1),
            Decision::Retry => self.retries += 1,
            Decision::Backtrack => self.backtracks += 1,
        }
    }

    fn text(&self) -> String {
        let (retries, backtracks) =
            (count(self.retries, "retry"), count(self.backtracks, "backtrack"));
        format!("· round {} · {retries} · {backtracks}", self.round)
    }
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} step {pos} · {elapsed} {msg}")
                .expect("invariant: the template is well formed"),
        );
        bar.enable_steady_tick(Duration::from_millis(100));
        let (counts, trajectories) = (Counts::default(), Trajectories::default());
        Self { bar, counts, trajectories, fanout: 1 }
    }

    fn event(&mut self, event: &Numbered<'_>) {
        match event.name {
            "waiting" => {
                if let Ok(waiting) = serde_json::from_str(event.line) {
                    let line = waiting_text(&waiting);
                    self.bar.suspend(|| note!("{line}"));
                }
            }
            "step" => {
                if let Ok(step) = serde_json::from_str(event.line) {
                    self.step(&step);
                }
            }
            "trajectory_ended" => {
                if let Ok(TrajectoryEnd { round, trajectory }) = serde_json::from_str(event.line) {
                    self.trajectories.ended(TurnId { round, trajectory });
                }
            }
            "voted" | "resumed" | "turn_failed" => {
                if event.name == "voted" {
                    self.trajectories.next_round();
                }
                let line = described(event);
                self.bar.suspend(|| note!("{line}"));
            }
            _ => {}
        }
    }

    fn step(&mut self, step: &Step) {
        let Step { round, trajectory, depth, action, feedback, decision } = step;
        let id = TurnId { round: *round, trajectory: *trajectory };
        let depth = usize::try_from(*depth).unwrap_or(usize::MAX);

        self.counts.add(step);
        self.fanout = self.fanout.max(u64::from(*trajectory) + 1);
        self.trajectories.settled(id, depth, action, feedback.as_deref(), *decision);
    }

    fn show(&self) {
        let columns = stderr_columns().unwrap_or(80);
        let rows = self.trajectories.rows(self.fanout, columns);
        self.bar.set_position(self.counts.steps);
        self.bar.set_message(format!("{}\n{}", self.counts.text(), rows.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            (
                "of_tomorrow",
                r#"{"event":"of_tomorrow","x":{"y":null}}"#,
                r#"7 of_tomorrow x={"y":null}"#,
            ),
        ];

        for (name, line, expected) in rows {
            assert_eq!(described(&Numbered { seq: 7, name, line }), expected);
        }
    }

    #[test]
    fn progress_counts_the_furthest_trajectory_of_the_round() {
        let mut counts = Counts::default();
        let rows = [
            (1, 0, "proceed"),
            (1, 1, "proceed"),
            (1, 0, "proceed"),
            (1, 2, "retry"),
            (1, 2, "backtrack"),
        ];
        let step = |round: u32, depth: u64, decision: &str| {
            serde_json::from_value(json!({"round": round, "depth": depth, "decision": decision}))
                .unwrap()
        };

        for (round, depth, decision) in rows {
            counts.add(&step(round, depth, decision));
        }

        assert_eq!(
            (counts.steps, counts.text().as_str()),
            (2, "· round 1 · 1 retry · 1 backtrack")
        );

        counts.add(&step(2, 0, "proceed"));
        assert_eq!(
            (counts.steps, counts.text().as_str()),
            (1, "· round 2 · 1 retry · 1 backtrack")
        );
    }
}
