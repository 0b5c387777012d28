//! Reads the trace and the answer from a model's output.
//!
//! Prompts ask for `<actions>` with one action per line and `<answer>` with a JSON object. Without
//! these tags, the last fenced block of JSON or the last JSON object is the answer, and the last
//! fenced block with an action the trace. The last usable candidate counts, because models correct
//! themselves, and then speak of what they have said. Reasoning is taken out before
//! ([`without_reasoning`]).
//!
//! - [`mod@line`]: the form of one line. [`value`]: equality of answers.
//! - `blocks`, `objects`: tags and fences, JSON within prose.

mod blocks;
pub mod line;
mod objects;
#[cfg(test)]
mod tests;
pub mod value;

use serde_json::Value;

use crate::judge::ActionList;
use blocks::{Fenced, Tags, fenced};
use line::{action_line, trimmed};
use objects::{object, objects};
pub use prime_reasoning::without_reasoning;

/// The result of looking for a part of an output. Absent and unreadable are different findings:
/// only an absent answer may be taken from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Found<T> {
    /// It is missing.
    #[default]
    Absent,
    /// It is there, with this text, and cannot be read.
    Unreadable(String),
    /// It was read.
    Read(T),
}

/// The trace and the answer in an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Lines in the form of [`action_line`]; at least one is an action.
    pub actions: Found<ActionList>,
    /// A JSON object.
    pub answer: Found<Value>,
}

/// The lines of a block that are not blank, and true if one of them is an action.
pub fn lines(block: &str, is_action: impl Fn(&str) -> bool) -> (ActionList, bool) {
    let (mut list, mut has_action) = (ActionList::default(), false);
    for line in block.split(['\n', '\r']).filter(|line| !trimmed(line).is_empty()) {
        let (line, is) = action_line(line, &is_action);
        has_action |= is;
        list.push(&line);
    }
    (list, has_action)
}

/// The last block with an action.
fn last_trace(blocks: &[Fenced<'_>], is_action: impl Fn(&str) -> bool) -> Option<ActionList> {
    let blocks = blocks.iter().rev().filter(|block| !block.is_program());
    let mut traces = blocks
        .filter(|block| object(block.content).is_none())
        .map(|block| lines(block.content, &is_action));
    traces.find_map(|(list, has_action)| has_action.then_some(list))
}

fn actions_in(
    tags: &Tags<'_>,
    blocks: &[Fenced<'_>],
    is_action: impl Fn(&str) -> bool,
) -> Found<ActionList> {
    let mut unread = None;
    for part in tags.parts(false).iter().rev().filter(|part| part.is_opened) {
        if let Some(list) = last_trace(&fenced(part.inside), &is_action) {
            return Found::Read(list);
        }
        let (list, has_action) = lines(part.inside, &is_action);
        if has_action {
            return Found::Read(list);
        }
        if !part.may_be_mention() {
            unread.get_or_insert(part.inside);
        }
    }

    match (unread, last_trace(blocks, is_action)) {
        (Some(inside), _) => Found::Unreadable(inside.to_owned()),
        (None, Some(list)) => Found::Read(list),
        (None, None) => Found::Absent,
    }
}

/// The answer in a tagged part; absent if the part is blank or about something else.
fn answer_in_part(part: &blocks::Tagged<'_>) -> Found<Value> {
    let inside = trimmed(part.inside);
    // JSON of another type is not an answer, whatever objects it holds.
    if let Ok(value) = serde_json::from_str::<Value>(inside) {
        return if value.is_object() {
            Found::Read(value)
        } else {
            Found::Unreadable(inside.to_owned())
        };
    }

    let found = objects(inside);
    match found.last {
        Some(value) if !found.is_broken_after => Found::Read(value),
        None if found.has_empty && !found.is_broken_after => {
            Found::Read(Value::Object(serde_json::Map::new()))
        }
        None if inside.is_empty() => Found::Absent,
        None if part.may_be_mention() && !found.is_broken_after && !inside.starts_with('{') => {
            Found::Absent
        }
        _ => Found::Unreadable(inside.to_owned()),
    }
}

/// The last answer between tags. Prose there does not take back an earlier answer, but a complete
/// part that looks like an object and is not one does.
fn tagged_answer(tags: &Tags<'_>) -> Found<Value> {
    let mut unread = Found::Absent;
    for part in tags.parts(true).iter().rev() {
        match answer_in_part(part) {
            Found::Read(value) => return Found::Read(value),
            Found::Unreadable(inside) => {
                let takes_back = part.is_closed && objects(&inside).is_broken_after;
                if unread == Found::Absent {
                    unread = Found::Unreadable(inside);
                }
                if takes_back {
                    return unread;
                }
            }
            Found::Absent => {}
        }
    }
    unread
}

/// The beginning of a text, long enough to recognise it.
fn beginning(text: &str) -> String {
    const LENGTH: usize = 200;
    text.chars().take(LENGTH).collect()
}

fn answer_in(text: &str, tags: &Tags<'_>, blocks: &[Fenced<'_>]) -> Found<Value> {
    let tagged = tagged_answer(tags);
    if tagged != Found::Absent {
        return tagged;
    }

    let is_answer = |value: &Value| value.as_object().is_some_and(|fields| !fields.is_empty());
    let of_blocks = blocks.iter().rev().find_map(|block| object(block.content).filter(is_answer));
    if let Some(value) = of_blocks {
        return Found::Read(value);
    }

    let found = objects(text);
    match found.last {
        Some(value) if !found.is_broken_after => return Found::Read(value),
        None if found.has_empty && !found.is_broken_after => {
            return Found::Read(Value::Object(serde_json::Map::new()));
        }
        _ if found.is_broken_after => return Found::Unreadable(beginning(text)),
        _ => {}
    }

    // An answer in another form than the one asked for is present nevertheless.
    let after = tags.end().max(blocks.last().map_or(0, |block| block.end));
    let has_other_form = blocks.iter().any(|block| {
        block.language.eq_ignore_ascii_case("json") && !trimmed(block.content).is_empty()
    });
    if has_other_form || text[after..].contains("\\boxed{") {
        return Found::Unreadable(beginning(text));
    }
    Found::Absent
}

/// Reads an output. `is_action` says whether a line is an action of the task.
pub fn read(text: &str, is_action: impl Fn(&str) -> bool) -> Output {
    let text = without_reasoning(text);
    let (tags, blocks) = (Tags::of(&text), fenced(&text));
    Output {
        actions: actions_in(&tags, &blocks, is_action),
        answer: answer_in(&text, &tags, &blocks),
    }
}
