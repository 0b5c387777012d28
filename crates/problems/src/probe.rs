//! Tests if the checks that accept an answer would refuse another one in its place. A tautology
//! refuses none, and neither do checks of the steps alone: their acceptance proves nothing.
//!
//! The others are made from the answer, the schema and the input, so that they have the right form
//! and are as close to the answer as wrong answers are. Only a check that is false counts: one that
//! cannot be evaluated says nothing about answers.

use serde_json::{Value, json};

use super::answer::Reader;
use super::checks::Checks;
use super::definition::{Definition, LineForm};
use super::limits::{LINE_BYTES_MAX, WORK_MAX};
use super::steps::Steps;
use prime_bench::tasks::Kind;

/// Most other answers that are tried.
const OTHERS_MAX: usize = 48;
/// Most parts of a list, an object or the input that others are made from.
const PARTS_MAX: usize = 4;

/// Returns whether some other answer of the right form is refused in this state. Also true if there
/// is no other answer to try, because the form leaves no choice.
pub fn refuses_others(
    (definition, answers, checks): (&Definition, &Reader, &Checks),
    steps: &Steps,
    answer: &Value,
) -> bool {
    let mut has_tried = false;
    let mut left = 2 * WORK_MAX;

    for other in others(definition, answer) {
        if other == *answer || !has_form(answers, &other) {
            continue;
        }
        has_tried = true;
        for kind in [Kind::Terminal, Kind::Invariant] {
            let found = checks.broken_within(kind, steps, Some(&other), &mut left);
            if found.iter().any(|finding| finding.reason.is_none()) {
                return true;
            }
        }
    }
    !has_tried
}

fn has_form(answers: &Reader, other: &Value) -> bool {
    let text = match other {
        Value::String(text) if answers.keeps_text() => text.clone(),
        other => other.to_string(),
    };
    let is_line = text.len() <= LINE_BYTES_MAX && !text.chars().any(char::is_control);
    is_line && answers.read(&text).is_ok_and(|read| read == *other)
}

/// Other answers, the most likely wrong ones first.
fn others(definition: &Definition, answer: &Value) -> Vec<Value> {
    let mut all = changed(answer);
    if let Some(LineForm::Schema(schema)) = &definition.answer {
        all.extend(schema["enum"].as_array().into_iter().flatten().take(OTHERS_MAX).cloned());
    }
    leaves(&definition.input, &mut all);
    all.extend([json!("a"), json!("0"), json!(0), json!(-1), json!(true), json!(null)]);
    all.extend([json!([]), json!({})]);
    all.truncate(OTHERS_MAX);
    all
}

/// The values that differ from this one by one change.
fn changed(answer: &Value) -> Vec<Value> {
    match answer {
        Value::Null => vec![json!(0), json!("a"), json!(false)],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => {
            let whole = number.as_i64().into_iter();
            let whole = whole.flat_map(|number| {
                let near = [1, -1, 2].map(|by| number.saturating_add(by));
                let far = [number.saturating_neg(), number.saturating_mul(1000)];
                near.into_iter().chain(far).map(|number| json!(number))
            });
            let real = number.as_f64().filter(|_| number.is_f64()).into_iter();
            let real = real.flat_map(|number| [number + 1.0, -number, number * 1000.0]);
            whole.chain(real.map(|number| json!(number))).collect()
        }
        Value::String(text) => changed_texts(text),
        Value::Array(items) => changed_lists(items),
        Value::Object(fields) => {
            let names = fields.keys().take(PARTS_MAX);
            let one = names.flat_map(|name| {
                let with = |value: Value| {
                    let mut other = fields.clone();
                    other.insert(name.clone(), value);
                    Value::Object(other)
                };
                let mut without = fields.clone();
                without.remove(name);
                let changed = changed(&fields[name]).into_iter().take(PARTS_MAX).map(with);
                changed.chain([Value::Object(without)]).collect::<Vec<_>>()
            });
            one.collect()
        }
    }
}

fn changed_texts(text: &str) -> Vec<Value> {
    let next = |c: char| match c {
        '9' => '0',
        'z' => 'a',
        'Z' => 'A',
        c => char::from_u32(u32::from(c) + 1).unwrap_or('a'),
    };
    let (mut first, mut last): (Vec<char>, Vec<char>) = (text.chars().collect(), Vec::new());
    last.clone_from(&first);
    if let Some(c) = first.first_mut() {
        *c = next(*c);
    }
    if let Some(c) = last.last_mut() {
        *c = next(*c);
    }

    let joined = |chars: Vec<char>| chars.into_iter().collect::<String>();
    let reversed = text.chars().rev().collect::<String>();
    let shorter = text.char_indices().last().map_or("", |(at, _)| &text[..at]).to_owned();
    let texts = [
        joined(last),
        joined(first),
        format!("{text}x"),
        format!("{text}1"),
        shorter,
        reversed,
        text.repeat(1 + 200 / text.len().max(1)),
    ];
    texts.into_iter().map(Value::String).collect()
}

fn changed_lists(items: &[Value]) -> Vec<Value> {
    let one = (0..items.len().min(PARTS_MAX)).flat_map(|at| {
        changed(&items[at]).into_iter().take(PARTS_MAX).map(move |value| {
            let mut other = items.to_vec();
            other[at] = value;
            Value::Array(other)
        })
    });
    let mut all: Vec<Value> = one.collect();

    let mut twice = items.to_vec();
    twice.extend(items.last().cloned());
    let reversed = items.iter().rev().cloned().collect();
    let shorter = items[..items.len().saturating_sub(1)].to_vec();
    all.extend([shorter, reversed, twice, Vec::new()].map(Value::Array));
    all
}

/// Texts, numbers and names of the input.
fn leaves(input: &Value, all: &mut Vec<Value>) {
    match input {
        Value::Array(items) => items.iter().take(PARTS_MAX).for_each(|item| leaves(item, all)),
        Value::Object(fields) => {
            for (name, value) in fields.iter().take(PARTS_MAX) {
                all.push(json!(name));
                leaves(value, all);
            }
        }
        leaf => all.push(leaf.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Custom;

    /// Returns whether other answers are refused after these lines, of which the last one is the
    /// answer.
    fn refuses(form: &Value, check: &str, lines: &[&str]) -> bool {
        let steps = if lines.len() == 1 { "single" } else { "stepwise" };
        let mut problem = json!({
            "statement": "What is 2 + 2?",
            "steps": steps,
            "input": {"a": 2, "table": {"k1": "yes", "k2": "no"}},
            "constraints": [{"name": "c", "severity": "minor", "check": check}],
        });
        if !form.is_null() {
            problem["answer"] = form.clone();
        }
        let mut machine = Custom::read(&problem).expect(check).problem().start();
        for line in lines {
            machine.replay(line).expect("a line");
        }
        machine.refuses_other_answers()
    }

    fn schema(schema: impl Into<Value>) -> Value {
        json!({ "schema": schema.into() })
    }

    #[test]
    fn checks_that_no_other_answer_breaks_prove_nothing() {
        let none = Value::Null;
        for (form, check, lines) in [
            (none.clone(), "answer == answer", &["garbage"][..]),
            (none.clone(), "true || answer == 'z'", &["garbage"]),
            (none.clone(), "state == state", &["garbage"]),
            (none.clone(), "size(answer) >= 0", &["garbage"]),
            (none.clone(), "[answer].exists(a, true)", &["garbage"]),
            (none.clone(), "input.a == 2 || state.answer == 'x'", &["garbage"]),
            (none.clone(), "size(state.steps) < 50", &["hello", "answer: garbage"]),
            (none.clone(), "answer == answer && size(steps) < 2", &["b", "answer: garbage"]),
            (none.clone(), "step != 'a 1' || answer != answer", &["b", "answer: garbage"]),
            (none, "state.steps.all(s, s.matches('^[0-9]+$'))", &["1", "answer: garbage"]),
            (schema(json!({"type": "array", "minItems": 1})), "answer == answer", &["[99]"]),
            (schema(json!({"type": "array"})), "answer[0] == answer[0]", &["[99]"]),
            (schema(json!({"type": "string", "minLength": 3})), "answer == answer", &["\"abc\""]),
            (schema(json!({"enum": ["red", "blue"]})), "answer == answer", &["\"red\""]),
            (schema(json!({"type": "integer", "minimum": 10})), "answer == answer", &["12"]),
            (schema(json!({"type": "integer"})), "1 / answer == 1 / answer", &["5"]),
            (schema(json!({})), "answer <= answer", &["5"]),
            (schema(json!({"required": ["x"]})), "true || answer.x == 1", &["{\"x\": 3}"]),
            (json!({"pattern": "[0-9]{4}"}), "answer == answer", &["1234"]),
        ] {
            assert!(!refuses(&form, check, lines), "{check}: {lines:?}");
        }
    }

    #[test]
    fn checks_that_tell_answers_apart_do() {
        let none = Value::Null;
        for (form, check, lines) in [
            (none.clone(), "answer == '4'", &["4"][..]),
            (none.clone(), "int(answer) == input.a + 2", &["4"]),
            (none.clone(), "input.table[answer] == 'yes'", &["k1"]),
            (none.clone(), "size(answer) <= 20", &["short"]),
            (none.clone(), "answer.startsWith('a')", &["abc"]),
            (none.clone(), "input.a == 3 || state.answer == '4'", &["4"]),
            (none.clone(), "size(state.steps) == 0 || answer == 'x'", &["b", "answer: x"]),
            (none, "answer == state.steps[size(state.steps) - 1]", &["b", "answer: b"]),
            (schema(json!({"type": "integer"})), "answer > 0", &["5"]),
            (schema(json!({"type": "integer"})), "answer % 2 == 0", &["4"]),
            (schema(json!({"type": "number"})), "answer < 3.0", &["2.5"]),
            (schema(json!({"type": "boolean"})), "answer", &["true"]),
            (schema(json!({"required": ["x"]})), "answer.x == 3", &["{\"x\": 3}"]),
            (
                schema(json!({"type": "array"})),
                "size(answer) == 3 && answer[0] + answer[1] + answer[2] == 21",
                &["[3, 5, 13]"],
            ),
            // The only answer there is: the steps decide.
            (
                json!({"pattern": "done"}),
                "steps.all(s, s.matches('^[0-9]+$'))",
                &["1", "answer: done"],
            ),
        ] {
            assert!(refuses(&form, check, lines), "{check}: {lines:?}");
        }
    }
}
