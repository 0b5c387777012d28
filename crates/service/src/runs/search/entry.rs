//! The search entry of a run: facts of its spec and its result, and a text of bounded length.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::runs::record::RunRecord;
use crate::runs::spec::RunSpec;
use prime_journal::{RunRow, SearchEntry, Segment};

/// Maximum bytes of the parts of a run's text.
const INPUT_BYTES_MAX: usize = 2_048;
const ANSWER_BYTES_MAX: usize = 1_024;
const LINES_BYTES_MAX: usize = 2_048;

/// A committed step in an event, if it is one.
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

/// The committed lines in these events, each once.
pub(super) fn lines_of(segments: &[Segment]) -> Vec<String> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for (_, event) in segments.iter().flat_map(Segment::events) {
        // An event that is not a step of this version has no line.
        let Ok(step) = serde_json::from_slice::<Step<'_>>(event) else { continue };
        let is_committed = step.event == "step" && step.decision == "proceed" && step.applicable;
        if is_committed && !lines.iter().any(|line| *line == step.action) {
            bytes += step.action.len() + 1;
            lines.push(step.action.into_owned());
        }
        if bytes > LINES_BYTES_MAX {
            break;
        }
    }
    lines
}

/// The entry of a run with these committed lines.
pub(super) fn entry_of(row: &RunRow, lines: &[String]) -> SearchEntry {
    let spec = serde_json::from_str::<RunSpec>(&row.spec);
    let (Ok(spec), Ok(record)) = (spec, RunRecord::of_row(row)) else {
        // A run of another version is found by what the journal itself knows.
        let status = row.status.clone();
        let text = searched_text(&format!("{} {}", row.id, row.task));
        return SearchEntry { run: row.id.clone(), status, text, ..SearchEntry::default() };
    };

    let result = &record.result;
    let input = unescaped(&spec.input);
    let answer = result.answer.as_ref().map(unescaped).unwrap_or_default();
    let lines = lines.join("\n");
    let parts = [
        row.id.as_str(),
        &spec.task,
        &spec.instance,
        bounded(&answer, ANSWER_BYTES_MAX),
        bounded(&input, INPUT_BYTES_MAX),
        bounded(&lines, LINES_BYTES_MAX),
    ];

    let names = &spec.agents;
    let agents = [Some(&names.executor), Some(&names.verifier), Some(&names.coordinator)];
    let agents = agents.into_iter().chain([names.locator.as_ref()]).flatten().cloned().collect();
    SearchEntry {
        run: row.id.clone(),
        status: record.status.name().to_owned(),
        outcome: result.outcome.clone().unwrap_or_default(),
        agents,
        models: result.models.clone(),
        labels: result.labels.clone(),
        is_flagged: row.reviews.needed > 0,
        steps: result.steps,
        tokens: result.tokens.total(),
        wall_ms: result.wall_ms,
        text: searched_text(&parts.join("\n")),
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
        let segment = Segment::following(Head::genesis("{}"), events);
        assert_eq!(lines_of(&[segment]), ["cmp 0 1", "swap \"0\" 1"]);

        let many = (0..10_000).map(|number| step(&format!("line {number}"), "proceed", true));
        let lines = lines_of(&[Segment::following(Head::genesis("{}"), many)]).join("\n");
        assert!(lines.len() < LINES_BYTES_MAX + 20, "{}", lines.len());
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
        let entry = entry_of(&RunRow { task: "n-queens".to_owned(), ..row }, &[]);
        assert_eq!((entry.run.as_str(), entry.text.as_str()), ("ABC", "abc n-queens"));
        assert_eq!(entry.status, "queued");
    }
}
