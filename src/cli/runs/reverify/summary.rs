//! The runs that were judged again, as a table, and McNemar's test over them.

use serde_json::{Value, json};

use crate::cli::output::count;
use crate::cli::table::Table;
use prime_protocol::Assurance;
use prime_service::runs::{Change, RejudgedRun};
use prime_study::statistics::mcnemar;

/// A property of runs before and after.
#[derive(Clone, Copy, Default)]
struct Pairs {
    both: u64,
    only_before: u64,
    only_after: u64,
    neither: u64,
}

impl Pairs {
    fn add(&mut self, before: bool, after: bool) {
        let place = match (before, after) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_before,
            (false, true) => &mut self.only_after,
            (false, false) => &mut self.neither,
        };
        *place += 1;
    }

    fn p(self) -> Result<f64, String> {
        mcnemar(self.only_before, self.only_after, 1).map_err(|left_out| left_out.to_string())
    }

    fn json(self) -> Value {
        let (p, reason) = match self.p() {
            Ok(p) => (Some(p), None),
            Err(reason) => (None, Some(reason)),
        };
        json!({
            "both": self.both, "only_before": self.only_before, "only_after": self.only_after,
            "neither": self.neither, "p": p, "reason": reason,
        })
    }

    fn text(self, what: &str) -> String {
        let p = match self.p() {
            Ok(p) => format!("McNemar p = {p:.2e}"),
            Err(reason) => format!("no McNemar test: {reason}"),
        };
        let Self { both, only_before, only_after, neither } = self;
        format!(
            "{what}: {both} before and after, {only_before} only before, {only_after} only after, \
             {neither} neither; {p}\n"
        )
    }
}

#[derive(Default)]
pub struct Summary {
    rows: Vec<[String; 7]>,
    runs: u64,
    left_out: u64,
    verified: Pairs,
    /// Runs with an answer whose steps are all committed.
    answered: Pairs,
    notes: Vec<String>,
}

fn words(Change { before, after }: &Change<Option<Assurance>>) -> String {
    let word = |assurance: &Option<Assurance>| assurance.map_or("no answer", Assurance::name);
    if before == after {
        word(before).to_owned()
    } else {
        format!("{} → {}", word(before), word(after))
    }
}

impl Summary {
    pub fn add(&mut self, id: String, judged: Result<RejudgedRun, String>) {
        let Ok(run) = judged else {
            self.left_out += 1;
            return;
        };

        self.runs += 1;
        let is_verified = |assurance: Option<Assurance>| assurance == Some(Assurance::Verified);
        let Change { before, after } = &run.assurance;
        self.verified.add(is_verified(*before), is_verified(*after));
        self.answered.add(run.answer.before.is_some(), run.answer.after.is_some());

        if let Some(failure) = &run.failure {
            self.notes.push(format!(
                "{id}: {} without a new verdict, the first: {failure}",
                count(run.failed, "step")
            ));
        }
        let kept = match run.answer_kept {
            Some(true) => "kept",
            Some(false) if run.answer.after.is_none() => "lost",
            Some(false) => "another",
            None => "none",
        };
        self.rows.push([
            id,
            run.instance,
            run.steps.to_string(),
            run.verdicts_changed.to_string(),
            run.decisions_changed.to_string(),
            words(&run.assurance),
            kept.to_owned(),
        ]);
    }

    pub fn json(&self) -> Value {
        json!({
            "runs": self.runs, "left_out": self.left_out,
            "verified": self.verified.json(), "answered": self.answered.json(),
        })
    }

    pub fn text(&self) -> String {
        let header =
            ["id", "instance", "steps", "other verdicts", "other decisions", "assurance", "answer"];
        let table = Table::new(header, self.rows.iter().cloned());
        let table = table.may_drop(&["steps", "instance"]);
        let notes: Vec<_> = self.notes.iter().map(|note| format!("- {note}\n")).collect();
        format!(
            "{table}{}{} judged again, {} left out\n{}{}",
            notes.concat(),
            count(self.runs, "run"),
            self.left_out,
            self.verified.text("verified"),
            self.answered.text("with an answer")
        )
    }
}
