//! Extracts actions and answer from a model's free text (the first of the four stages).
//!
//! Prompts ask for `<actions>` with one action per line and `<answer>` with a JSON object. Without
//! these tags, the last fenced block of JSON is the answer and the last other fenced block the
//! actions; without fences, the last JSON object is the answer. The last of several counts, because
//! models correct themselves.

use serde_json::Value;

use super::actions::ActionList;

/// The actions and the answer found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    pub actions: Option<ActionList>,
    pub answer: Option<Value>,
}

/// The text between the last `<name>` and its end mark, or the end of the text.
fn marked<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let inside = &text[text.rfind(&open)? + open.len()..];
    Some(inside.split_once(&close).map_or(inside, |(inside, _)| inside))
}

/// Fenced blocks as (language, content), in order. An unclosed last fence counts.
fn fenced(text: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("```") {
        let after = &rest[open + 3..];
        let (language, body) = after.split_once('\n').unwrap_or((after, ""));
        let (content, next) = body.split_once("```").unwrap_or((body, ""));
        blocks.push((language.trim(), content));
        rest = next;
    }
    blocks
}

fn without_fence(text: &str) -> &str {
    fenced(text).last().map_or(text, |(_, content)| content)
}

fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok().filter(Value::is_object)
}

/// The last JSON object in a text.
fn last_object(text: &str) -> Option<Value> {
    const TRIES: usize = 64;
    // The widest object that ends at the last closing brace: try its opening braces from the left,
    // but not too many, because a text of braces alone would take quadratic time.
    let end = text.rfind('}')? + 1;
    let opens: Vec<usize> = text[..end].match_indices('{').map(|(at, _)| at).collect();
    let from = opens.len().saturating_sub(TRIES);
    opens[from..].iter().find_map(|open| object(&text[*open..end]))
}

/// An action line stripped of what models add: a list number, a bullet, backticks.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (digits > 0).then(|| line[digits..].strip_prefix(['.', ')', ':'])).flatten();
    let line = numbered.filter(|rest| rest.starts_with(' ')).map_or(line, str::trim_start);
    line.strip_prefix('`').and_then(|line| line.strip_suffix('`')).unwrap_or(line)
}

/// The lines of a block; `keep` says whether a line is an action unchanged.
fn action_lines(block: &str, keep: impl Fn(&str) -> bool) -> ActionList {
    let line = |line| {
        let trimmed = str::trim(line);
        // Some actions look decorated: `- scrap` begins like a bullet.
        if keep(trimmed) { trimmed } else { bare(trimmed) }
    };
    block.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
}

/// Extracts actions and answer from a text. `is_action` says whether a line is an action of the
/// task.
pub fn extract(text: &str, is_action: impl Fn(&str) -> bool) -> Extracted {
    let blocks = fenced(text);
    let answer = match marked(text, "answer") {
        Some(inside) => {
            object(inside).or_else(|| object(without_fence(inside))).or_else(|| last_object(inside))
        }
        None => blocks
            .iter()
            .rev()
            .find_map(|(_, content)| object(content))
            .or_else(|| last_object(text)),
    };

    let actions = match marked(text, "actions") {
        Some(inside) => Some(action_lines(without_fence(inside), is_action)),
        None => {
            let block = blocks.iter().rev().find(|(_, content)| object(content).is_none());
            block.map(|(_, content)| action_lines(content, is_action))
        }
    };
    Extracted { actions, answer }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> (Option<ActionList>, Option<Value>) {
        let extracted =
            extract(text, |line| line.starts_with("cmp ") || line == "done" || line == "4 17");
        (extracted.actions, extracted.answer)
    }

    fn lines(lines: &[&str]) -> ActionList {
        lines.iter().copied().collect()
    }

    #[test]
    fn marks_are_read_and_the_last_ones_count() {
        let text = "Let me see.\n<actions>\ncmp 9 9\n</actions>\nNo:\n<actions>\n1. cmp 0 1\n- `done`\n4 17\n\n</actions>\n\
                    <answer>{\"a\": 1}</answer> or rather <answer>\n```json\n{\"a\": [2]}\n```\n</answer>.";
        assert_eq!(
            found(text),
            (Some(lines(&["cmp 0 1", "done", "4 17"])), Some(json!({"a": [2]})))
        );
        assert_eq!(
            found("<answer>{\"a\":1}"),
            (None, Some(json!({"a": 1}))),
            "a text that was cut off"
        );
        assert_eq!(found("<answer>none</answer> {\"a\":1}"), (None, None), "what is marked counts");
    }

    #[test]
    fn without_marks_fences_and_objects_are_read() {
        let text = "```\ncmp 0 1\ndone\n```\nso\n```json\n{\"a\": 3}\n```";
        assert_eq!(found(text), (Some(lines(&["cmp 0 1", "done"])), Some(json!({"a": 3}))));
        assert_eq!(
            found("It is {\"a\": {\"b\": 1}} I think."),
            (None, Some(json!({"a": {"b": 1}})))
        );
        assert_eq!(found("It is {1,2}, so {\"a\": 1}"), (None, Some(json!({"a": 1}))));
        assert_eq!(found("I do not know"), (None, None));
        assert_eq!(found("[1, 2]"), (None, None), "an answer is an object");
    }

    #[test]
    fn hostile_text_never_panics() {
        for text in
            ["{".repeat(100_000), "}".repeat(100_000), "{}".repeat(50_000), "```".repeat(50_000)]
        {
            found(&text);
            found(&format!("<answer>{text}"));
        }
    }
}
