//! The trajectories of a run in progress: what each of them has committed and what its model is
//! writing. Pure.

use std::collections::BTreeMap;

use crate::cli::output::{count, wrapped};
use prime_printable::printable_line;
use prime_protocol::{Decision, Role, TurnId};
use prime_runtime::{PromptRead, Writing};

/// Rows of trajectories: with the status and a rejection they fit on a terminal of 24 rows.
const ROWS_MAX: usize = 8;
/// Rows that a line may take where it is not one of several: lines of a model may be long.
const LINE_ROWS_MAX: usize = 2;

/// The live trajectories of a round, and the last rejected line of any of them.
#[derive(Default)]
pub struct Trajectories {
    rows: BTreeMap<u32, Row>,
    rejected: Option<Rejected>,
}

#[derive(Default)]
struct Row {
    /// Committed steps.
    steps: usize,
    last: Last,
    draft: Option<Draft>,
    is_over: bool,
}

/// What happened last in a trajectory.
#[derive(Default)]
enum Last {
    #[default]
    Nothing,
    /// A line was committed.
    Committed(String),
    /// It left the state after as many steps; where it continues shows with its next commit.
    BackFrom(usize),
}

struct Rejected {
    trajectory: u32,
    /// The place that the line would have had, from 1 on.
    step: usize,
    line: String,
    reason: Option<String>,
}

/// What a model is writing.
struct Draft {
    role: Role,
    text: String,
    prompt: Option<PromptRead>,
}

impl Trajectories {
    /// Takes the decision on a line; `depth` is the number of committed steps before it.
    pub fn settled(
        &mut self,
        id: TurnId,
        depth: usize,
        line: &str,
        reason: Option<&str>,
        decision: Decision,
    ) {
        let row = self.rows.entry(id.trajectory).or_default();
        row.draft = None;
        row.steps = depth;

        match decision {
            Decision::Proceed => {
                row.steps = depth.saturating_add(1);
                row.last = Last::Committed(line.to_owned());
                return;
            }
            Decision::Retry => {}
            Decision::Backtrack => row.last = Last::BackFrom(depth),
        }
        self.rejected = Some(Rejected {
            trajectory: id.trajectory,
            step: depth.saturating_add(1),
            line: line.to_owned(),
            reason: reason.map(str::to_owned),
        });
    }

    /// Takes what a model is writing.
    pub fn wrote(&mut self, id: TurnId, role: Role, writing: &Writing) {
        let draft = Draft { role, text: writing.text.clone(), prompt: writing.prompt };
        self.rows.entry(id.trajectory).or_default().draft = Some(draft);
    }

    pub fn ended(&mut self, id: TurnId) {
        let row = self.rows.entry(id.trajectory).or_default();
        row.draft = None;
        row.is_over = true;
    }

    /// The next round begins with new trajectories.
    pub fn next_round(&mut self) {
        self.rows.clear();
    }

    /// The rows of a status, each within `columns` and with a line break at its end. What models
    /// wrote is made printable. `fanout` is the number of trajectories of a round.
    pub fn rows(&self, fanout: u64, columns: usize) -> String {
        let mut text = String::new();
        if fanout > 1 {
            for (trajectory, row) in self.rows.iter().take(ROWS_MAX) {
                text += &cut(&row.one_of_several(*trajectory), columns, 1);
            }
            let hidden = self.rows.len().saturating_sub(ROWS_MAX);
            if hidden > 0 {
                text += &format!("  and {}\n", count(hidden as u64, "more trajectory"));
            }
        } else if let Some(Row { steps, last: Last::Committed(line), .. }) = self.rows.get(&0) {
            let committed = format!("  committed step {steps}: {}", printable_line(line));
            text += &cut(&committed, columns, LINE_ROWS_MAX);
        }

        if let Some(rejected) = &self.rejected {
            text += &cut(&rejected.row(fanout), columns, LINE_ROWS_MAX);
        }
        if fanout <= 1
            && let Some(draft) = self.rows.values().find_map(|row| row.draft.as_ref())
        {
            text += &cut(&draft.row(), columns, LINE_ROWS_MAX);
        }
        text
    }
}

impl Row {
    fn one_of_several(&self, trajectory: u32) -> String {
        let steps = self.steps;
        let done = match &self.last {
            Last::Nothing => "no step yet".to_owned(),
            Last::Committed(line) => format!("step {steps}: {}", printable_line(line)),
            Last::BackFrom(left) => format!("went back from step {left}"),
        };
        let now = match &self.draft {
            _ if self.is_over => ", ended".to_owned(),
            Some(draft) => format!(", {}", draft.text()),
            None => String::new(),
        };
        format!("  trajectory {trajectory}  {done}{now}")
    }
}

impl Rejected {
    fn row(&self, fanout: u64) -> String {
        let Self { trajectory, step, line, reason } = self;
        let whose = if fanout > 1 { format!("trajectory {trajectory}, ") } else { String::new() };
        let reason = reason.as_deref().unwrap_or("no reason given");
        format!(
            "  rejected  {whose}step {step}: {}: {}",
            printable_line(line),
            printable_line(reason)
        )
    }
}

impl Draft {
    /// The line that the model is at.
    fn line(&self) -> &str {
        self.text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// As a part of a trajectory's row.
    fn text(&self) -> String {
        match (self.prompt, self.line()) {
            (Some(PromptRead { read, tokens }), "") => {
                format!("{} reads {read} of {tokens} tokens", self.role)
            }
            (_, line) => format!("{} writes {}", self.role, printable_line(line)),
        }
    }

    /// As a row of its own.
    fn row(&self) -> String {
        let whose = match self.role {
            Role::Executor => String::new(),
            role => format!("{role}: "),
        };
        match (self.prompt, self.line()) {
            (Some(PromptRead { read, tokens }), "") => {
                format!("  reading   {whose}{read} of {tokens} tokens of the prompt")
            }
            (_, line) => format!("  writing   {whose}{}", printable_line(line)),
        }
    }
}

/// At most `rows_max` rows of a wrapped line, each cut at the last column.
fn cut(line: &str, columns: usize, rows_max: usize) -> String {
    let rows = wrapped(line, Some(columns));
    let is_longer = rows.lines().count() > rows_max;

    let mut kept = String::new();
    for (place, row) in rows.lines().take(rows_max).enumerate() {
        let is_cut = row.chars().count() > columns || (is_longer && place + 1 == rows_max);
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

    fn turn(trajectory: u32) -> TurnId {
        TurnId { round: 1, trajectory }
    }

    fn writing(text: &str, prompt: Option<PromptRead>) -> Writing {
        Writing { text: text.to_owned(), prompt }
    }

    #[test]
    fn each_trajectory_has_a_row_with_its_last_step_and_what_its_agents_do() {
        let mut trajectories = Trajectories::default();
        trajectories.settled(turn(2), 0, "place 0 2", None, Decision::Proceed);
        trajectories.settled(turn(0), 3, "place 3 5", None, Decision::Proceed);
        trajectories.settled(turn(1), 2, "place 2 1", Some("two queens"), Decision::Backtrack);
        trajectories.ended(turn(2));
        let read = Some(PromptRead { read: 128, tokens: 384 });
        trajectories.wrote(turn(0), Role::Executor, &writing("so row 4 is free\npla", read));
        trajectories.wrote(turn(3), Role::Executor, &writing("", read));

        let expected = "
  trajectory 0  step 4: place 3 5, executor writes pla
  trajectory 1  went back from step 2
  trajectory 2  step 1: place 0 2, ended
  trajectory 3  no step yet, executor reads 128 of 384 tokens
  rejected  trajectory 1, step 3: place 2 1: two queens
";
        assert_eq!(trajectories.rows(4, 76), expected[1..]);

        trajectories.next_round();
        assert!(!trajectories.rows(4, 76).contains("trajectory 0"));
    }

    #[test]
    fn a_single_trajectory_needs_no_name() {
        let mut single = Trajectories::default();
        single.settled(turn(0), 0, "place 0 2", None, Decision::Proceed);
        single.settled(turn(0), 1, "place 1 2", None, Decision::Retry);
        single.wrote(turn(0), Role::Verifier, &writing("VAL", None));
        let expected = "
  rejected  step 2: place 1 2: no reason given
  writing   verifier: VAL
";
        assert!(single.rows(1, 76).ends_with(&expected[1..]), "{}", single.rows(1, 76));
        assert!(single.rows(1, 76).starts_with("  committed step 1: place 0 2\n"));

        single.settled(turn(0), 1, "place 1 4", None, Decision::Proceed);
        assert!(!single.rows(1, 76).contains("writing"));
    }

    #[test]
    fn rows_are_few_short_and_printable() {
        let mut many = Trajectories::default();
        for trajectory in 0..20 {
            many.settled(turn(trajectory), 0, &"x ".repeat(500), Some("y"), Decision::Proceed);
        }
        let text = many.rows(20, 40);
        assert_eq!(text.lines().count(), ROWS_MAX + 1, "{text}");
        assert!(text.lines().all(|row| row.chars().count() <= 40), "{text}");
        assert!(text.ends_with("  and 12 more trajectories\n"), "{text}");

        let mut hostile = Trajectories::default();
        hostile.settled(turn(0), 0, "a\u{1b}[2J\nb", Some("\u{1b}c"), Decision::Backtrack);
        hostile.wrote(turn(0), Role::Executor, &writing("\u{1b}[2J", None));
        assert!(!hostile.rows(1, 80).contains('\u{1b}'));
        assert!(!hostile.rows(4, 80).contains('\u{1b}'));
    }
}
