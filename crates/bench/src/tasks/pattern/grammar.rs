//! The forms written out for others: as GBNF rules, and as regular expressions.

use std::fmt::Write as _;

use super::{Part, class_of, parts};

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn field_gbnf(field: &str, bounds: Option<Bounds>, out: &mut String) {
    match field {
        "nat" => out.push_str("nat"),
        "nat?" => out.push_str("(nat | \"-\")"),
        "int" => out.push_str("int"),
        "digit" => out.push_str("[0-9]"),
        "rat" => {
            *out += &format!("(big | \"-\" [1-9] {}) (\"/\" big)?", digits(bounds));
        }
        "ratio" => out.push_str("big (\"/\" big)?"),
        "big" => out.push_str("big"),
        "bigint" => *out += &format!("(big | \"-\" [1-9] {})", digits(bounds)),
        "nats" => *out += &list("nat", bounds),
        "nats?" => *out += &format!("({} | \"-\")", list("nat", bounds)),
        "ints" => *out += &list("int", bounds),
        class if class.starts_with('[') => {
            let (ranges, min, max) = class_of(class);
            let count = if max == usize::MAX { "+".to_owned() } else { format!("{{{min},{max}}}") };
            write!(out, "[{ranges}]{count}").expect("invariant: writing to a string succeeds");
        }
        words => {
            out.push('(');
            for (place, word) in words.split('|').enumerate() {
                if place > 0 {
                    out.push_str(" | ");
                }
                quoted(word, out);
            }
            out.push(')');
        }
    }
}

/// A literal in a regular expression, escaped as every common dialect reads it.
fn escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

fn field_regex(field: &str, out: &mut String) {
    // Sixteen digits admit all numbers below 2^53, and some above that only the parser refuses.
    const NAT: &str = "(?:0|[1-9][0-9]{0,15})";
    const INT: &str = "(?:0|-?[1-9][0-9]{0,15})";
    const BIG: &str = "(?:0|[1-9][0-9]*)";
    const BIGINT: &str = "(?:0|-?[1-9][0-9]*)";
    *out += &match field {
        "nat" => NAT.to_owned(),
        "nat?" => format!("(?:{NAT}|-)"),
        "int" => INT.to_owned(),
        "digit" => "[0-9]".to_owned(),
        "rat" => format!("{BIGINT}(?:/{BIG})?"),
        "ratio" => format!("{BIG}(?:/{BIG})?"),
        "big" => BIG.to_owned(),
        "bigint" => BIGINT.to_owned(),
        "nats" => format!("{NAT}(?: {NAT})*"),
        "nats?" => format!("(?:{NAT}(?: {NAT})*|-)"),
        "ints" => format!("{INT}(?: {INT})*"),
        class if class.starts_with('[') => class.to_owned(),
        words => {
            // Some dialects take the first word that fits, not the longest.
            let mut words: Vec<&str> = words.split('|').collect();
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            let mut all = String::new();
            for (place, word) in words.into_iter().enumerate() {
                all += if place > 0 { "|" } else { "" };
                escaped(word, &mut all);
            }
            format!("(?:{all})")
        }
    };
}

/// A regular expression for one form, without anchors: it matches one whole action line. It uses
/// what all common dialects share, and no capturing groups.
pub fn form_regex(form: &str) -> String {
    let mut out = String::new();
    for part in parts(form) {
        match part {
            Part::Literal(literal) => escaped(literal, &mut out),
            Part::Field(field) => field_regex(field, &mut out),
        }
    }
    out
}

/// A regular expression for all of the forms, as [`form_regex`].
pub fn regex(forms: &[&str]) -> String {
    format!("(?:{})", forms.iter().map(|form| form_regex(form)).collect::<Vec<_>>().join("|"))
}

/// The greatest lengths of numbers and lists in a grammar. Without bounds a model whose digits run
/// on fills its answer with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Most digits of a number, at least 1.
    pub digits: usize,
    /// Most numbers of a list, at least 1.
    pub items: usize,
}

/// Longest list that is bounded: a grammar that counts further is large.
const ITEMS_MAX: usize = 64;
/// Fewest and most digits to which numbers are bounded: a grammar that counts further is large.
const DIGITS_MIN: usize = 4;
const DIGITS_MAX: usize = 256;

impl Bounds {
    /// The bounds for a step from a state, of the texts of the instance and of the state. A step
    /// sums or multiplies at most two numbers of the texts, which doubles their digits; one digit
    /// more covers a carry. A list names each number once, and one more. Both are rounded, so that
    /// few grammars serve many states.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Self {
        let (mut longest, mut numbers) = (1, 0);
        for text in texts {
            for run in text.split(|byte| !byte.is_ascii_digit()).filter(|run| !run.is_empty()) {
                longest = longest.max(run.len());
                numbers += 1;
            }
        }
        let digits = (2 * longest + 1).clamp(DIGITS_MIN, DIGITS_MAX + 1).next_power_of_two();
        Self { digits, items: (numbers + 1).min(ITEMS_MAX + 1) }
    }
}

/// GBNF rules for the forms: the rule `action` matches one action line; `nat`, `int` and `big` are
/// its numbers.
pub fn gbnf(forms: &[&str]) -> String {
    gbnf_within(forms, None)
}

/// Like [`gbnf`], with bounds for numbers and lists.
pub fn gbnf_within(forms: &[&str], bounds: Option<Bounds>) -> String {
    let mut out = String::from("action ::= ");
    for (index, form) in forms.iter().enumerate() {
        if index > 0 {
            out.push_str(" | ");
        }
        for (place, part) in parts(form).enumerate() {
            if place > 0 {
                out.push(' ');
            }
            match part {
                Part::Literal(literal) => quoted(literal, &mut out),
                Part::Field(field) => field_gbnf(field, bounds, &mut out),
            }
        }
    }

    let more = bounds.map_or(15, |bounds| bounds.digits.clamp(1, 16) - 1);
    let big = digits(bounds);
    out.push_str(&format!(
        "\nnat ::= \"0\" | [1-9] [0-9]{{0,{more}}}\nint ::= nat | \"-\" [1-9] [0-9]{{0,{more}}}\n\
         big ::= \"0\" | [1-9] {big}\n"
    ));
    out
}

/// Further digits of a number without a limit of its own.
fn digits(bounds: Option<Bounds>) -> String {
    match bounds.map(|bounds| bounds.digits.max(1)).filter(|digits| *digits <= DIGITS_MAX) {
        Some(digits) => format!("[0-9]{{0,{}}}", digits - 1),
        None => "[0-9]*".to_owned(),
    }
}

/// A list of numbers of a rule.
fn list(rule: &str, bounds: Option<Bounds>) -> String {
    match bounds.map(|bounds| bounds.items.max(1) - 1).filter(|more| *more < ITEMS_MAX) {
        Some(0) => rule.to_owned(),
        Some(more) => format!("{rule} (\" \" {rule}){{0,{more}}}"),
        None => format!("{rule} (\" \" {rule})*"),
    }
}

/// A GBNF rule `action` that permits these lines and no others. There is at least one.
pub fn gbnf_of_lines<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    let mut out = String::from("action ::= ");
    for (index, line) in lines.into_iter().enumerate() {
        if index > 0 {
            out.push_str(" | ");
        }
        quoted(line, &mut out);
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_bounded_by_what_is_there() {
        // The longest number has three digits: 2 * 3 + 1 is rounded up to 8. There are four.
        let bounds = Bounds::of([&b"{\"n\":12}"[..], b"[3,4,567]"]);
        assert_eq!(bounds, Bounds { digits: 8, items: 5 });
        assert_eq!(
            gbnf_within(&["take <nats>", "sum <big>"], Some(bounds)),
            "action ::= \"take \" nat (\" \" nat){0,4} | \"sum \" big\n\
             nat ::= \"0\" | [1-9] [0-9]{0,7}\n\
             int ::= nat | \"-\" [1-9] [0-9]{0,7}\n\
             big ::= \"0\" | [1-9] [0-9]{0,7}\n"
        );

        // Numbers and lists that are too long to count have no bound.
        let (long, many) = ("9".repeat(200), "1 ".repeat(100));
        let bounds = Bounds::of([long.as_bytes(), many.as_bytes()]);
        let grammar = gbnf_within(&["take <nats>", "sum <big>"], Some(bounds));
        assert!(
            grammar.contains("(\" \" nat)*") && grammar.contains("big ::= \"0\" | [1-9] [0-9]*")
        );
    }
}
