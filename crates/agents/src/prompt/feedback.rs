//! Why a line was rejected, in words for the model that wrote it: what is wrong with the line, and
//! what would be possible instead.

use prime_bench::tasks::{Machine, Refusal};

/// The beginning of the reason why a line without an end was rejected.
pub const CUT_OFF: &str = "cut off after ";

/// Values of a field that are listed; further ones are only counted.
const VALUES_MAX: usize = 12;

/// Why a line was rejected at the machine's state; `reason` is what the verdict says.
pub(super) fn explained(machine: &dyn Machine, line: &str, reason: Option<&str>) -> String {
    if reason.is_some_and(|reason| reason.starts_with(CUT_OFF)) {
        return "it is too long and was cut off; write only the action".to_owned();
    }

    match machine.fork().propose(line) {
        Err(Refusal::Unparsable) => no_action(machine, line),
        Err(Refusal::Illegal(detail)) => {
            let outside = outside(machine, line);
            match outside {
                Some(outside) => format!("{detail}; {outside}"),
                None => detail.to_owned(),
            }
        }
        // The line can be applied, or only the task's program can tell: the verdict says why it is
        // wrong.
        Ok(()) | Err(Refusal::Unanswered) => reason.unwrap_or("it is not the next step").to_owned(),
    }
}

/// Why a line is not an action of the task.
fn no_action(machine: &dyn Machine, line: &str) -> String {
    let forms = machine.spec().page.actions;
    let word = line.split_whitespace().next().unwrap_or_default();
    let meant = forms.iter().find(|form| form.line.split(' ').next() == Some(word));

    match meant {
        Some(form) => {
            let (has, wants) = (parts_after(line), parts_after(form.line));
            let repeats = form.line.contains("...") || form.line.contains('…');
            if has == wants || repeats {
                format!("it does not have the form `{}`, such as `{}`", form.line, form.example)
            } else {
                let parts = if has == 1 { "part" } else { "parts" };
                format!(
                    "it has {has} {parts} after `{word}`; the form is `{}`, such as `{}`",
                    form.line, form.example
                )
            }
        }
        None => {
            let known: Vec<_> = forms.iter().map(|form| format!("`{}`", form.line)).collect();
            match known.as_slice() {
                [] => "it is not an action".to_owned(),
                known => format!("it is not an action; the forms are {}", known.join(", ")),
            }
        }
    }
}

/// The parts of a line after its first word.
fn parts_after(line: &str) -> usize {
    line.split_whitespace().count().saturating_sub(1)
}

/// The first part of an action that no choice of the state has in this place, and the parts that
/// choices have there.
fn outside(machine: &dyn Machine, line: &str) -> Option<String> {
    let choices = machine.choices()?;
    let mut parts = line.split(' ');
    let word = parts.next()?;

    let mut fitting: Vec<Vec<&str>> = choices
        .iter()
        .map(|choice| choice.split(' ').collect::<Vec<_>>())
        .filter(|choice| choice.first() == Some(&word))
        .collect();
    if fitting.is_empty() {
        return Some(format!("no `{word}` is possible in this state"));
    }

    let form =
        machine.spec().page.actions.iter().find(|form| form.line.split(' ').next() == Some(word));
    for (place, part) in parts.enumerate() {
        let at = place + 1;
        let (with, without): (Vec<_>, Vec<_>) =
            fitting.into_iter().partition(|choice| choice.get(at) == Some(&part));
        if with.is_empty() {
            let mut values: Vec<&str> = Vec::new();
            for choice in &without {
                let value = choice.get(at).copied()?;
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let name = form.and_then(|form| form.line.split(' ').nth(at)).unwrap_or("the value");
            return Some(format!("{name} is {part}, but here it can be {}", listed(&values)));
        }
        fitting = with;
    }
    None
}

/// Values as a range, or one by one.
fn listed(values: &[&str]) -> String {
    let mut numbers: Vec<i64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    numbers.sort_unstable();
    let is_range = numbers.len() == values.len()
        && numbers.len() > 2
        && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if let [first, .., last] = numbers.as_slice()
        && is_range
    {
        return format!("{first} to {last}");
    }

    let shown = values.iter().take(VALUES_MAX).copied().collect::<Vec<_>>().join(", ");
    match values.len().saturating_sub(VALUES_MAX) {
        0 => shown,
        more => format!("{shown} or one of {more} others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks;
    use serde_json::json;

    fn queens() -> Box<dyn Machine> {
        let task = tasks::find("n-queens").expect("listed");
        let problem = task.read_input(&json!({"n": 4, "order": [0, 1, 2, 3]})).expect("an input");
        problem.start()
    }

    #[test]
    fn a_model_learns_what_is_wrong_and_what_is_possible() {
        let machine = queens();
        let forms = "it is not an action; the forms are `place <r> <c>`, `back <r>`";
        for (line, expected) in [
            ("hello", forms),
            ("", forms),
            (
                "place 0",
                "it has 1 part after `place`; the form is `place <r> <c>`, such as `place 0 2`",
            ),
            ("place a b", "it does not have the form `place <r> <c>`, such as `place 0 2`"),
        ] {
            assert_eq!(explained(machine.as_ref(), line, Some("format: …")), expected);
        }

        let outside = explained(machine.as_ref(), "place 9 1", Some("format: …"));
        assert!(outside.ends_with("; <r> is 9, but here it can be 0"), "{outside}");
        let outside = explained(machine.as_ref(), "place 0 9", Some("format: …"));
        assert!(outside.ends_with("; <c> is 9, but here it can be 0 to 3"), "{outside}");
    }

    #[test]
    fn values_are_a_range_or_a_short_list() {
        assert_eq!(listed(&["2", "0", "1"]), "0 to 2");
        assert_eq!(listed(&["0", "2"]), "0, 2");
        assert_eq!(listed(&["0", "1", "3"]), "0, 1, 3");
        let many: Vec<String> = (0..14).map(|number| (number * 2).to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(listed(&many), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 or one of 2 others");
    }

    #[test]
    fn a_line_that_can_be_applied_is_explained_by_its_verdict_and_a_cut_one_by_its_length() {
        let mut machine = queens();
        machine.replay("place 0 0").expect("legal");
        let reason = "no-attack: no two queens share a column or a diagonal";
        assert_eq!(explained(machine.as_ref(), "place 1 3", Some(reason)), reason);
        assert_eq!(explained(machine.as_ref(), "place 1 3", None), "it is not the next step");
        assert_eq!(
            explained(machine.as_ref(), "999", Some("cut off after 24 tokens of completion")),
            "it is too long and was cut off; write only the action"
        );
    }
}
