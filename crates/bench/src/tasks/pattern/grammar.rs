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

fn field_gbnf(field: &str, out: &mut String) {
    match field {
        "nat" => out.push_str("nat"),
        "nat?" => out.push_str("(nat | \"-\")"),
        "int" => out.push_str("int"),
        "digit" => out.push_str("[0-9]"),
        "rat" => out.push_str("(big | \"-\" [1-9] [0-9]*) (\"/\" big)?"),
        "ratio" => out.push_str("big (\"/\" big)?"),
        "big" => out.push_str("big"),
        "bigint" => out.push_str("(big | \"-\" [1-9] [0-9]*)"),
        "nats" => out.push_str("nat (\" \" nat)*"),
        "nats?" => out.push_str("(nat (\" \" nat)* | \"-\")"),
        "ints" => out.push_str("int (\" \" int)*"),
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

/// GBNF rules for the forms: the rule `action` matches one action line; `nat`, `int` and `big` are
/// its numbers.
pub fn gbnf(forms: &[&str]) -> String {
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
                Part::Field(field) => field_gbnf(field, &mut out),
            }
        }
    }

    out.push_str("\nnat ::= \"0\" | [1-9] [0-9]{0,15}\nint ::= nat | \"-\" [1-9] [0-9]{0,15}\n");
    out.push_str("big ::= \"0\" | [1-9] [0-9]*\n");
    out
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
