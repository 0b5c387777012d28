//! The status of a run in progress, as text. Pure.

use std::time::Duration;

use super::live::Expected;
use crate::cli::output::{count, wrapped};
use prime_printable::printable_line;
use prime_protocol::{Role, TurnId};
use prime_runtime::{PromptRead, Writing};

/// Rows that the last lines may take each: lines of a model may be long.
const STEP_ROWS_MAX: usize = 2;

/// A proposed line. What a model wrote is made printable.
#[derive(Clone, Debug)]
pub struct Step {
    depth: usize,
    line: String,
    reason: Option<String>,
}

impl Step {
    /// `depth` is the number of committed steps before it.
    pub fn new(depth: usize, line: &str, reason: Option<&str>) -> Self {
        let printable = |text: &str| printable_line(text).into_owned();
        Self { depth, line: printable(line), reason: reason.map(printable) }
    }
}

/// What a model is writing. What it wrote is made printable.
#[derive(Clone, Debug)]
pub struct Draft {
    pub id: TurnId,
    role: Role,
    /// The line that it is at.
    line: String,
    prompt: Option<PromptRead>,
}

impl Draft {
    pub fn new(id: TurnId, role: Role, writing: &Writing) -> Self {
        let line = writing.text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        Self { id, role, line: printable_line(line).into_owned(), prompt: writing.prompt }
    }

    /// The row of the status; `fanout` is the number of trajectories.
    fn row(&self, fanout: u64) -> String {
        let whose = match (self.role, fanout) {
            (Role::Executor, ..=1) => String::new(),
            (Role::Executor, _) => format!("trajectory {}: ", self.id.trajectory),
            (role, _) => format!("{role}: "),
        };
        match self.prompt {
            Some(PromptRead { read, tokens }) if self.line.is_empty() => {
                format!("  reading   {whose}{read} of {tokens} tokens of the prompt")
            }
            _ => format!("  writing   {whose}{}", self.line),
        }
    }
}

/// What is shown of a run.
pub struct Status<'s> {
    /// Committed steps of the longest trajectory of the round.
    pub steps: u64,
    pub expected: Expected,
    pub elapsed: Duration,
    /// The run's wall time, if it is limited.
    pub limit: Option<Duration>,
    pub round: u64,
    pub max_rounds: u32,
    /// Trajectories of the round that have ended, of `fanout`.
    pub ended: u64,
    pub fanout: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub last: Option<&'s Step>,
    pub rejected: Option<&'s Step>,
    /// What a model is writing.
    pub draft: Option<&'s Draft>,
}

impl Status<'_> {
    /// The status in one line.
    pub fn line(&self) -> String {
        let seconds = self.elapsed.as_secs();
        let time = match self.limit {
            Some(limit) => format!("{seconds} of at most {} s", limit.as_secs()),
            None => format!("{seconds} s"),
        };
        let length = match self.expected {
            Expected::About(steps) => format!("about {steps}"),
            Expected::AtMost(steps) => format!("at most {steps}"),
        };
        let left = self.left().map_or_else(String::new, |left| format!(", about {left} s left"));

        let rejected = self.retries + self.backtracks;
        format!(
            "step {} of {length} · {time}{left} · round {} of {} · {} of {} ended · {rejected} \
             rejected",
            self.steps,
            self.round,
            self.max_rounds,
            self.ended,
            count(self.fanout, "trajectory"),
        )
    }

    /// Seconds until the longest trajectory ends at its pace so far, where its length is known.
    fn left(&self) -> Option<u64> {
        let Expected::About(all) = self.expected else { return None };
        let left = all.checked_sub(self.steps).filter(|left| *left > 0 && self.steps > 0)?;
        let millis = self.elapsed.as_millis() * u128::from(left) / u128::from(self.steps);
        u64::try_from(millis.div_ceil(1_000)).ok()
    }

    /// The status, the last proposed line and the last rejected one with its reason, wrapped at
    /// words within `columns`.
    pub fn lines(&self, columns: usize) -> String {
        let mut text = wrapped(&self.line(), Some(columns));
        if let Some(Step { depth, line, .. }) = self.last {
            text += &cut(&format!("  proposed  step {}: {line}", depth + 1), columns);
        }
        if let Some(Step { depth, line, reason }) = self.rejected {
            let reason = reason.as_deref().unwrap_or("no reason given");
            text += &cut(&format!("  rejected  step {}: {line}: {reason}", depth + 1), columns);
        }
        if let Some(draft) = self.draft {
            text += &cut(&draft.row(self.fanout), columns);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// At most [`STEP_ROWS_MAX`] rows of a wrapped line, each cut at the last column.
fn cut(line: &str, columns: usize) -> String {
    let rows = wrapped(line, Some(columns));
    let is_longer = rows.lines().count() > STEP_ROWS_MAX;
    let mut kept = String::new();
    for (place, row) in rows.lines().take(STEP_ROWS_MAX).enumerate() {
        let is_cut = row.chars().count() > columns || (is_longer && place + 1 == STEP_ROWS_MAX);
        if is_cut {
            kept.extend(row.chars().take(columns.saturating_sub(1)));
            kept.push('…');
        } else {
            kept += row;
        }
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status<'s>(last: Option<&'s Step>, rejected: Option<&'s Step>) -> Status<'s> {
        Status {
            steps: 10,
            expected: Expected::About(30),
            elapsed: Duration::from_secs(5),
            limit: Some(Duration::from_mins(10)),
            round: 1,
            max_rounds: 3,
            ended: 0,
            fanout: 4,
            retries: 1,
            backtracks: 2,
            last,
            rejected,
            draft: None,
        }
    }

    fn draft(role: Role, text: &str, prompt: Option<PromptRead>) -> Draft {
        let id = TurnId { round: 1, trajectory: 3 };
        Draft::new(id, role, &Writing { text: text.to_owned(), prompt })
    }

    #[test]
    fn what_a_model_is_writing_is_shown_last_and_printable() {
        let prompt = Some(PromptRead { read: 128, tokens: 384 });
        for (draft, expected) in [
            (
                draft(Role::Executor, "", prompt),
                "  reading   trajectory 3: 128 of 384 tokens of the prompt",
            ),
            (
                draft(Role::Executor, "so row 3 is free\npla", prompt),
                "  writing   trajectory 3: pla",
            ),
            (draft(Role::Executor, "first\n", None), "  writing   trajectory 3: first"),
            (
                draft(Role::Verifier, "\u{1b}[2JVALID", None),
                "  writing   verifier: \\u001b[2JVALID",
            ),
        ] {
            let shown = Status { draft: Some(&draft), ..status(None, None) }.lines(76);
            assert_eq!(shown.lines().last(), Some(expected));
        }

        let alone = draft(Role::Executor, "place", None);
        let shown = Status { draft: Some(&alone), fanout: 1, ..status(None, None) }.lines(76);
        assert_eq!(shown.lines().last(), Some("  writing   place"));
    }

    #[test]
    fn a_run_shows_its_pace_its_last_line_and_its_last_rejection() {
        let last = Step::new(10, "place 3 5", None);
        let rejected = Step::new(9, "place 3 4", Some("no-attack: two queens attack each other"));
        // Ten steps in five seconds: twenty more take ten.
        let expected = "\
step 10 of about 30 · 5 of at most 600 s, about 10 s left · round 1 of 3 · 0
            of 4 trajectories ended · 3 rejected
  proposed  step 11: place 3 5
  rejected  step 10: place 3 4: no-attack: two queens attack each other";
        assert_eq!(status(Some(&last), Some(&rejected)).lines(76), expected);
    }

    #[test]
    fn nothing_is_promised_where_the_length_is_unknown_or_exceeded() {
        let open = Status { expected: Expected::AtMost(10_000), ..status(None, None) };
        assert!(open.line().starts_with("step 10 of at most 10000 · 5 of at most 600 s · round"));
        let longer = Status { steps: 31, ..status(None, None) };
        assert!(!longer.line().contains("left"), "{}", longer.line());
        let begun = Status { steps: 0, ..status(None, None) };
        assert!(!begun.line().contains("left"), "{}", begun.line());
    }

    #[test]
    fn a_long_line_takes_two_rows_and_a_hostile_one_stays_printable() {
        let long = Step::new(0, &"x ".repeat(500), None);
        let text = status(Some(&long), None).lines(40);
        assert!(text.lines().all(|row| row.chars().count() <= 40), "{text}");
        assert!(text.ends_with('…'), "{text}");
        assert_eq!(text.lines().filter(|row| row.contains("x x")).count(), 2, "{text}");

        let hostile = Step::new(0, "a\u{1b}[2Jb\nc", None);
        assert!(!status(Some(&hostile), None).lines(80).contains('\u{1b}'));
    }
}
