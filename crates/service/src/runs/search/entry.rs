//! The search entry of a run: facts of its spec and its result, and a text of bounded length.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::excerpt::SearchedPart;
use crate::runs::labels::{Labels, searched_labels};
use crate::runs::record::RunRecord;
use crate::runs::spec::RunSpec;
use prime_journal::search::IMPORTED;
use prime_journal::{RunRow, SearchEntry, Segment};
use prime_protocol::Cost;
use prime_report::{Refusals, RunResult};

/// Maximum bytes of the parts of a run's text.
const INPUT_BYTES_MAX: usize = 2_048;
const ANSWER_BYTES_MAX: usize = 1_024;
const LINES_BYTES_MAX: usize = 2_048;
/// Most constraints of a run whose refused lines are kept.
const CONSTRAINTS_MAX: usize = 32;

/// A step in an event, if it is one.
#[derive(Deserialize)]
struct Step<'e> {
    #[serde(borrow)]
    event: Cow<'e, str>,
    #[serde(borrow, default)]
    decision: Cow<'e, str>,
    #[serde(default)]
    applicable: bool,
    #[serde(borrow, default)]
    action: Cow<'e, str>,
    #[serde(borrow, default)]
    violations: Vec<Cow<'e, str>>,
}

/// A text as it is searched: in lowercase, with spaces in place of control characters.
pub fn searched_text(text: &str) -> String {
    text.to_lowercase().replace(char::is_control, " ")
}

/// A JSON value as people write its texts: without escapes, so that `C:\\Users` is found.
fn unescaped(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(unescaped).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let field =
                |(name, value): (&String, &Value)| format!("\"{name}\":{}", unescaped(value));
            let fields: Vec<_> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The beginning of a text.
fn bounded(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What the events of a run say: its committed lines, each once, as far as they are searched, and
/// the lines that each constraint refused.
#[derive(Default)]
pub(super) struct Steps {
    lines: Vec<String>,
    line_bytes: usize,
    refusals: Refusals,
}

impl Steps {
    pub fn see(&mut self, segments: &[Segment]) {
        for (_, event) in segments.iter().flat_map(Segment::events) {
            // An event that is not a step, or not one that this version knows, has no line.
            let Ok(step) = serde_json::from_slice::<Step<'_>>(event) else { continue };
            if step.event != "step" {
                continue;
            }
            match &*step.decision {
                "proceed" if step.applicable => self.commit(step.action),
                "retry" | "backtrack" => self.refuse(&step.violations),
                _ => {}
            }
        }
    }

    fn commit(&mut self, line: Cow<'_, str>) {
        let is_full = self.line_bytes > LINES_BYTES_MAX;
        if !is_full && !self.lines.iter().any(|known| *known == line) {
            self.line_bytes += line.len() + 1;
            self.lines.push(line.into_owned());
        }
    }

    /// Counts a line that was refused; where no constraint is named, under the empty name.
    fn refuse(&mut self, violations: &[Cow<'_, str>]) {
        let unnamed = violations.is_empty().then_some("");
        self.refusals.count(violations.iter().map(|name| &**name).chain(unnamed));
    }

    /// The constraints that refused most lines.
    fn most_refused(&self) -> Vec<(String, u64)> {
        self.refusals.most(CONSTRAINTS_MAX)
    }
}

/// What a run is found by besides its lines, in the order in which it is noted.
pub(super) fn texts_of(
    row: &RunRow,
    spec: &RunSpec,
    result: &RunResult,
) -> [(SearchedPart, String); 6] {
    let beginning = |value: &Value, most| bounded(&unescaped(value), most).to_owned();
    // A run is found by its origin, and so an origin leads to what was made of it.
    let forked_from = spec.forked_from.as_ref().map(|origin| &origin.run);
    let origin = spec.retry_of.as_ref().or(forked_from);
    let answer = result.answer.as_ref().map(|answer| beginning(answer, ANSWER_BYTES_MAX));
    [
        (SearchedPart::Id, row.id.clone()),
        (SearchedPart::Origin, origin.cloned().unwrap_or_default()),
        (SearchedPart::Task, spec.task.clone()),
        (SearchedPart::Instance, spec.instance.clone()),
        (SearchedPart::Answer, answer.unwrap_or_default()),
        (SearchedPart::Input, beginning(&spec.input, INPUT_BYTES_MAX)),
    ]
}

/// The entry of a run with these steps, and with labels that were given since its acceptance.
pub(super) fn entry_of(row: &RunRow, steps: &Steps, labels: Option<Labels>) -> SearchEntry {
    let spec = serde_json::from_str::<RunSpec>(&row.spec);
    let (Ok(spec), Ok(record)) = (spec, RunRecord::of_row(row)) else {
        // A run of another version is found by what the journal itself knows.
        let status = row.status.clone();
        let text = searched_text(&format!("{} {}", row.id, row.task));
        return SearchEntry { run: row.id.clone(), status, text, ..SearchEntry::default() };
    };

    let result = &record.result;
    // The figures of a run that is not over are those of its last pause.
    let count = |figure: u64| if row.is_over { figure } else { 0 };
    let texts = texts_of(row, &spec, result).map(|(_, text)| searched_text(&text));
    let lines = steps.lines.iter().map(|line| searched_text(line)).collect::<Vec<_>>().join("\n");

    let names = &spec.agents;
    let agents = [Some(&names.executor), Some(&names.verifier), Some(&names.coordinator)];
    let agents = agents.into_iter().chain([names.locator.as_ref()]).flatten().cloned().collect();
    let mark = record.imported.as_ref().map(|_| IMPORTED.to_owned());
    let models = result.models.iter().cloned().chain(mark).collect();
    SearchEntry {
        run: row.id.clone(),
        status: record.status.name().to_owned(),
        outcome: result.outcome.clone().unwrap_or_default(),
        agents,
        models,
        labels: searched_labels(&labels.unwrap_or(spec.labels)),
        is_flagged: row.reviews.needed > 0,
        steps: count(result.steps),
        proposals: count(result.proposals),
        refused: count(result.retries + result.backtracks),
        refusals: steps.most_refused(),
        tokens: count(result.tokens.total()),
        completion_tokens: count(result.tokens.completion),
        wall_ms: count(result.wall_ms),
        cost_nanos: result.tokens.cost.filter(|_| row.is_over).map(Cost::nanos),
        text: format!("{}\n{}", texts.join("\n"), bounded(&lines, LINES_BYTES_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use prime_journal::Head;

    use super::*;

    fn step(action: &str, decision: &str, applicable: bool) -> String {
        serde_json::json!({
            "event": "step", "action": action, "decision": decision, "applicable": applicable,
        })
        .to_string()
    }

    #[test]
    fn the_lines_are_those_that_were_committed() {
        let events = [
            r#"{"event":"started"}"#.to_owned(),
            step("cmp 0 1", "proceed", true),
            step("cmp 0 1", "proceed", true),
            step("swap \"0\" 1", "proceed", true),
            step("nonsense", "proceed", false),
            step("swap 1 2", "backtrack", true),
            "no JSON".to_owned(),
        ];
        let lines_of = |segment| {
            let mut steps = Steps::default();
            steps.see(&[segment]);
            steps.lines
        };
        let segment = Segment::following(Head::genesis("{}"), events);
        assert_eq!(lines_of(segment), ["cmp 0 1", "swap \"0\" 1"]);

        let many = (0..10_000).map(|number| step(&format!("line {number}"), "proceed", true));
        let lines = lines_of(Segment::following(Head::genesis("{}"), many)).join("\n");
        assert!(lines.len() < LINES_BYTES_MAX + 20, "{}", lines.len());
    }

    #[test]
    fn refused_lines_are_counted_by_constraint() {
        let refused = |decision: &str, violations: &[&str]| {
            serde_json::json!({
                "event": "step", "action": "x", "decision": decision, "applicable": true,
                "violations": violations,
            })
            .to_string()
        };
        let long = "x".repeat(200);
        let mut events = vec![
            refused("retry", &["sorted"]),
            refused("backtrack", &["sorted", "\"quoted\""]),
            refused("backtrack", &[]),
            refused("proceed", &["minor"]),
            refused("retry", &[&long]),
        ];
        let mut steps = Steps::default();
        steps.see(&[Segment::following(Head::genesis("{}"), &events)]);
        let expected = [("sorted", 2), ("", 1), ("\"quoted\"", 1), (&long[..128], 1)];
        let expected = expected.map(|(name, lines)| (name.to_owned(), lines));
        assert_eq!(steps.most_refused(), expected);

        // A program may invent a name for each line.
        events.extend((0..2_000).map(|number| refused("retry", &[&format!("new {number}")])));
        steps.see(&[Segment::following(Head::genesis("{}"), &events)]);
        assert_eq!((steps.most_refused().len(), steps.refusals.by_name().len()), (32, 1_000));
        assert_eq!(steps.most_refused()[0], ("sorted".to_owned(), 4));
    }

    #[test]
    fn a_text_is_searched_without_case_and_control_characters() {
        assert_eq!(searched_text("GRÖSSE\tA\u{0}b\n"), "grösse a b ");
        assert_eq!(bounded("größe", 4), "gr\u{f6}");
        assert_eq!(bounded("größe", 3), "gr");
        assert_eq!(bounded("a", 9), "a");
    }

    #[test]
    fn texts_in_values_have_no_escapes() {
        let value = serde_json::json!({"path": "C:\\Users\\bob", "list": ["a\nb", 1.5, null]});
        let text = searched_text(&unescaped(&value));
        assert_eq!(text, "{\"path\":\"c:\\users\\bob\",\"list\":[\"a b\",1.5,null]}");
    }

    #[test]
    fn a_run_of_another_version_is_found_by_its_id() {
        let (row, _) = RunRow::probe("ABC".to_owned());
        let entry =
            entry_of(&RunRow { task: "n-queens".to_owned(), ..row }, &Steps::default(), None);
        assert_eq!((entry.run.as_str(), entry.text.as_str()), ("ABC", "abc n-queens"));
        assert_eq!(entry.status, "queued");
    }
}
