//! Checks forms of action lines that a program declares: those of the benchmark are constants, and
//! its parser relies on them.

use super::limits::{CLASS_COUNT_MAX, FIELDS_MAX};

/// Fields that stand for numbers.
const NUMBERS: [&str; 11] =
    ["nat", "int", "big", "bigint", "digit", "rat", "ratio", "nats", "ints", "nat?", "nats?"];

fn count(text: &str) -> Option<usize> {
    text.parse().ok().filter(|count| *count <= CLASS_COUNT_MAX)
}

/// True if this is `[a-d]+`, `[a-d]{2}` or `[a-d]{1,2}`.
fn is_class(field: &str) -> bool {
    let Some((ranges, times)) = field.strip_prefix('[').and_then(|rest| rest.rsplit_once(']'))
    else {
        return false;
    };
    let is_plain = !ranges.is_empty() && !ranges.contains(['\\', ']', '[', '^', '"']);
    let times = match times.strip_prefix('{').and_then(|times| times.strip_suffix('}')) {
        None => times == "+",
        Some(times) => match times.split_once(',') {
            None => count(times).is_some_and(|count| count > 0),
            Some((least, most)) => matches!(
                (count(least), count(most)),
                (Some(least), Some(most)) if least <= most && most > 0
            ),
        },
    };
    is_plain && times
}

fn is_words(field: &str) -> bool {
    // A single word could as well be a misspelt kind of number.
    field.contains('|') && field.split('|').all(|word| !word.is_empty())
}

/// What is wrong with a form, if anything is.
pub(super) fn fault(form: &str) -> Option<String> {
    if form.trim() != form || form.is_empty() {
        return Some("it is empty, or has blanks round it".to_owned());
    }
    if form.chars().any(|c| c.is_control() || c == '"') {
        return Some("it has a quotation mark or a control character in it".to_owned());
    }

    let (mut rest, mut fields) = (form, 0);
    while let Some(open) = rest.find('<') {
        let inside = &rest[open + 1..];
        // A class may contain the closing bracket.
        let class = if inside.starts_with('[') { inside.find(']').unwrap_or(0) } else { 0 };
        let Some(close) = inside[class..].find('>') else {
            return Some("a `<` has no `>`".to_owned());
        };
        let field = &inside[..class + close];
        if !(NUMBERS.contains(&field) || is_class(field) || is_words(field)) {
            return Some(format!(
                "<{field}> is not a field: write <nat>, <int>, <nats>, <ints>, <big>, <bigint>, \
                 <rat>, <digit>, words as <a|b>, or a class as <[a-d]{{1,2}}> or <[a-z]+>"
            ));
        }
        fields += 1;
        rest = &inside[class + close + 1..];
    }
    (fields > FIELDS_MAX).then(|| format!("it has {fields} fields; write at most {FIELDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::pattern;

    #[test]
    fn a_form_that_passes_is_parsed_and_one_that_does_not_is_named() {
        for (form, line) in [
            ("fill <a|b>", "fill b"),
            ("move <nat> <[A-C]{1}>", "move 3 B"),
            ("<[ -~]+>", "any thing"),
            ("say <[a-z>]{1,3}> <rat>", "say a> 1/2"),
            ("gieße über", "gieße über"),
        ] {
            assert_eq!(fault(form), None, "{form}");
            assert!(pattern::parse(&[form], line).is_some(), "{form}");
            assert!(!pattern::gbnf(&[form]).is_empty());
        }
        for (form, part) in [
            ("", "empty"),
            (" x", "blanks"),
            ("fill <a|b", "no `>`"),
            ("fill <jug>", "<jug> is not a field"),
            ("<[a-z]>", "is not a field"),
            ("<[]+>", "is not a field"),
            ("<[a-z]{3,1}>", "is not a field"),
            ("<[a-z]{1,9999999}>", "is not a field"),
            ("<a||b>", "is not a field"),
            ("say \"x\"", "quotation"),
            ("<nat> <nat> <nat> <nat> <nat> <nat> <nat>", "7 fields"),
        ] {
            assert!(
                fault(form).is_some_and(|fault| fault.contains(part)),
                "{form}: {:?}",
                fault(form)
            );
        }
    }
}
