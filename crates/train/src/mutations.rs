//! Mutates lines of a trace into candidates for wrong steps, without judging them.

use std::ops::Range;

use prime_bench::tasks::TaskRng;

/// The lines around a state of a trace.
pub struct Neighbours {
    /// The reference step of the state.
    pub reference: String,
    /// Steps before it, oldest first.
    pub before: Vec<String>,
    /// Steps after it, in order.
    pub after: Vec<String>,
}

/// A random line made from the neighbours, which may be the reference itself; `None` if the drawn
/// edit does not apply.
///
/// Picks a line (the reference, the previous step, or the step of another state), then usually
/// edits it: changes a number, swaps two numbers, or puts its numbers into another form of action.
pub fn mutated(lines: &Neighbours, forms: &[&str], rng: &mut TaskRng) -> Option<String> {
    let line = match rng.below(4) {
        0 | 1 => &lines.reference,
        2 => lines.before.last()?,
        _ => {
            let others: Vec<_> = lines.before.iter().chain(&lines.after).collect();
            if others.is_empty() {
                return None;
            }
            rng.one_of(&others)
        }
    };

    match rng.below(4) {
        0 => Some(line.clone()),
        1 => other_number(line, rng),
        2 => exchanged(line, rng),
        _ => other_form(line, forms, rng),
    }
}

fn numbers(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end += 1,
            None => found.push(at..at + 1),
        }
    }

    found
}

fn replaced(line: &str, place: &Range<usize>, text: &str) -> String {
    format!("{}{text}{}", &line[..place.start], &line[place.end..])
}

/// Increments or decrements one of the numbers, or changes one of its digits.
fn other_number(line: &str, rng: &mut TaskRng) -> Option<String> {
    let found = numbers(line);
    if found.is_empty() {
        return None;
    }

    let place = found[rng.index(found.len())].clone();
    let number: u64 = line[place.clone()].parse().ok()?;

    let other = match rng.below(4) {
        0 => number.checked_add(1)?,
        1 => number.checked_sub(1)?,
        _ => {
            let power = 10u64.checked_pow(u32::try_from(rng.index(place.len())).ok()?)?;
            number - number / power % 10 * power + rng.below(10) * power
        }
    };

    Some(replaced(line, &place, &other.to_string()))
}

/// Swaps two of the numbers.
fn exchanged(line: &str, rng: &mut TaskRng) -> Option<String> {
    let found = numbers(line);
    if found.len() < 2 {
        return None;
    }

    let (a, b) = rng.pair(found.len());
    let (left, right) = (&found[a.min(b)], &found[a.max(b)]);
    let line_with = replaced(line, right, &line[left.clone()]);

    Some(replaced(&line_with, left, &line[right.clone()]))
}

/// The numbers of the line in another form; `None` if there are too few, or the form has fields
/// that are not numbers.
fn other_form(line: &str, forms: &[&str], rng: &mut TaskRng) -> Option<String> {
    let mut pieces = forms[rng.index(forms.len())].split('<');
    let mut other = pieces.next()?.to_owned();

    let mut values = numbers(line).into_iter();
    for piece in pieces {
        let (field, literal) = piece.split_once('>')?;
        if !["nat", "int", "digit"].contains(&field) {
            return None;
        }
        other += &line[values.next()?];
        other += literal;
    }

    Some(other)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(make: impl Fn(&mut TaskRng) -> Option<String>) -> BTreeSet<String> {
        let mut rng = TaskRng::new(3);
        (0..500).filter_map(|_| make(&mut rng)).collect()
    }

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn numbers_change_and_nothing_else() {
        let digits = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10"];
        assert_eq!(all(|rng| other_number("q9", rng)), set(&digits));
        assert_eq!(all(|rng| other_number("done", rng)), set(&[]));

        let others = all(|rng| other_number("3 41", rng));
        assert!(
            ["2 41", "4 41", "3 40", "3 42", "3 91", "3 1"]
                .iter()
                .all(|line| others.contains(*line)),
            "{others:?}"
        );
    }

    #[test]
    fn numbers_are_exchanged_within_a_line() {
        assert_eq!(
            all(|rng| exchanged("move 10 0 2", rng)),
            set(&["move 0 10 2", "move 2 0 10", "move 10 2 0"])
        );
        assert_eq!(all(|rng| exchanged("back 3", rng)), set(&[]));
    }

    #[test]
    fn other_forms_take_the_numbers_in_order() {
        let forms = ["cmp <nat> <nat>", "back <nat>", "done", "say <[a-d]+>"];
        assert_eq!(
            all(|rng| other_form("swap 4 5", &forms, rng)),
            set(&["cmp 4 5", "back 4", "done"])
        );
        assert_eq!(all(|rng| other_form("pass", &forms, rng)), set(&["done"]));
    }

    #[test]
    fn lines_come_from_every_place_of_the_trace() {
        let own = |line: &str| line.to_owned();
        let lines = Neighbours {
            reference: own("c"),
            before: vec![own("a"), own("b")],
            after: vec![own("d")],
        };
        assert_eq!(all(|rng| mutated(&lines, &["e"], rng)), set(&["a", "b", "c", "d", "e"]));
    }
}
