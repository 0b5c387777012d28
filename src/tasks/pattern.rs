//! One-line action grammars: from the same forms come the parser and the GBNF grammar.
//!
//! A form is literal text with fields in angle brackets:
//! `<nat>` a natural number below 2^53 without leading zeros; `<int>` the same with an optional minus sign (no `-0`);
//! `<digit>` one digit; `<rat>` an integer or a fraction; `<nats>` naturals separated by single spaces; `<nat?>` a
//! natural number or `-`; `<asc|desc>` one of the words; `<[a-d]{1,2}>` one to two characters of a class.

use std::fmt::Write as _;

use super::rational::Rational;

/// Integers in JSON stay exact below this bound.
pub const NUMBER_LIMIT: u64 = 1 << 53;

/// A parsed field of an action line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    Nat(u64),
    Int(i64),
    /// `-` where a number was optional.
    Absent,
    Text(&'a str),
}

const FIELDS_MAX: usize = 6;

/// The fields of a line, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    fields: [Field<'a>; FIELDS_MAX],
    count: usize,
}

impl<'a> Fields<'a> {
    fn new() -> Self {
        Self { fields: [Field::Absent; FIELDS_MAX], count: 0 }
    }

    fn push(&mut self, field: Field<'a>) {
        self.fields[self.count] = field;
        self.count += 1;
    }

    /// The natural number at place `index`, if it fits the wanted type.
    pub fn nat<N: TryFrom<u64>>(&self, index: usize) -> Option<N> {
        match self.fields[..self.count].get(index)? {
            Field::Nat(value) => N::try_from(*value).ok(),
            _ => None,
        }
    }

    pub fn int(&self, index: usize) -> Option<i64> {
        match self.fields[..self.count].get(index)? {
            Field::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The rational at place `index`, if it is in lowest terms.
    pub fn rational(&self, index: usize) -> Option<Rational> {
        self.text(index)?.parse().ok()
    }

    pub fn text(&self, index: usize) -> Option<&'a str> {
        match self.fields[..self.count].get(index)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }
}

enum Part<'p> {
    Literal(&'p str),
    Field(&'p str),
}

fn parts(form: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = form;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inside) = rest.strip_prefix('<') {
            let (field, after) = inside.split_once('>').expect("invariant: forms close their brackets");
            rest = after;
            return Some(Part::Field(field));
        }
        let (literal, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        rest = after;
        Some(Part::Literal(literal))
    })
}

/// Length of the natural number at the start of `text`, if there is one without leading zeros.
fn nat_len(text: &str) -> Option<usize> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    (len > 0 && (len == 1 || !text.starts_with('0'))).then_some(len)
}

fn int_len(text: &str) -> Option<usize> {
    match text.strip_prefix('-') {
        Some(digits) => nat_len(digits).filter(|_| !digits.starts_with('0')).map(|len| len + 1),
        None => nat_len(text),
    }
}

/// `[a-d]{1,2}` as (ranges, min, max).
fn class_of(field: &str) -> (&str, usize, usize) {
    let (class, count) = field.split_once("]{").expect("invariant: a class has a count");
    let count = count.trim_end_matches('}');
    let (min, max) = count.split_once(',').unwrap_or((count, count));
    let number = |text: &str| text.parse().expect("invariant: counts of a class are numbers");
    (&class[1..], number(min), number(max))
}

fn in_class(ranges: &str, c: char) -> bool {
    let chars: Vec<char> = ranges.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        if at + 2 < chars.len() && chars[at + 1] == '-' {
            if (chars[at]..=chars[at + 2]).contains(&c) {
                return true;
            }
            at += 3;
        } else {
            if chars[at] == c {
                return true;
            }
            at += 1;
        }
    }
    false
}

fn take<'a>(field: &str, text: &'a str) -> Option<(Field<'a>, &'a str)> {
    let cut = |len: usize| (&text[..len], &text[len..]);
    match field {
        "nat" | "nat?" => {
            if field == "nat?" && text.starts_with('-') {
                return Some((Field::Absent, &text[1..]));
            }
            let (digits, rest) = cut(nat_len(text)?);
            let value = digits.parse().ok().filter(|value| *value < NUMBER_LIMIT)?;
            Some((Field::Nat(value), rest))
        }
        "int" => {
            let (digits, rest) = cut(int_len(text)?);
            let value = digits.parse::<i64>().ok().filter(|value| value.unsigned_abs() < NUMBER_LIMIT)?;
            Some((Field::Int(value), rest))
        }
        "digit" => {
            let digit = text.bytes().next().filter(u8::is_ascii_digit)?;
            Some((Field::Nat(u64::from(digit - b'0')), &text[1..]))
        }
        "rat" => {
            let mut len = int_len(text)?;
            if text[len..].starts_with('/') {
                len += 1 + nat_len(&text[len + 1..])?;
            }
            let (number, rest) = cut(len);
            Some((Field::Text(number), rest))
        }
        "nats" => {
            let mut len = nat_len(text)?;
            while text[len..].starts_with(' ') {
                match nat_len(&text[len + 1..]) {
                    Some(more) => len += 1 + more,
                    None => break,
                }
            }
            let (numbers, rest) = cut(len);
            Some((Field::Text(numbers), rest))
        }
        class if class.starts_with('[') => {
            let (ranges, min, max) = class_of(class);
            let taken = text.chars().take(max).take_while(|c| in_class(ranges, *c));
            let (count, len) = taken.fold((0, 0), |(count, len), c| (count + 1, len + c.len_utf8()));
            let (word, rest) = cut(len);
            (count >= min).then_some((Field::Text(word), rest))
        }
        words => {
            // The longest word that fits, so that one word may begin another.
            let word = words.split('|').filter(|word| text.starts_with(*word)).max_by_key(|word| word.len())?;
            let (word, rest) = cut(word.len());
            Some((Field::Text(word), rest))
        }
    }
}

fn fields_of<'a>(form: &str, line: &'a str) -> Option<Fields<'a>> {
    let mut fields = Fields::new();
    let mut rest = line;
    for part in parts(form) {
        match part {
            Part::Literal(literal) => rest = rest.strip_prefix(literal)?,
            Part::Field(field) => {
                let (value, after) = take(field, rest)?;
                fields.push(value);
                rest = after;
            }
        }
    }
    rest.is_empty().then_some(fields)
}

/// The first form that the whole line matches, with its fields.
pub fn parse<'a>(forms: &[&str], line: &'a str) -> Option<(usize, Fields<'a>)> {
    forms.iter().enumerate().find_map(|(index, form)| Some((index, fields_of(form, line)?)))
}

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
        "rat" => out.push_str("int (\"/\" nat)?"),
        "nats" => out.push_str("nat (\" \" nat)*"),
        class if class.starts_with('[') => {
            let (ranges, min, max) = class_of(class);
            write!(out, "[{ranges}]{{{min},{max}}}").expect("invariant: writing to a string succeeds");
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

/// GBNF rules for the forms: the rule `action` matches one action line; `nat` and `int` are its numbers.
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
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_sign_and_no_leading_zeros() {
        let forms = ["cmp <nat> <nat>"];
        assert!(parse(&forms, "cmp 0 12").is_some());
        for wrong in
            ["cmp 00 1", "cmp 01 2", "cmp -1 2", "cmp 1", "cmp 1 2 ", " cmp 1 2", "cmp  1 2", "cmp 1 9007199254740992"]
        {
            assert!(parse(&forms, wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_every_sort_are_read() {
        let forms =
            ["x<nat> = <rat>", "run <nat> <asc|desc>", "link <nat?>", "move <nats>", "<[_0-3]{1}> <L|R>", "acc <int>"];
        let text = |line: &'static str, place| parse(&forms, line).and_then(|(_, fields)| fields.text(place));
        assert_eq!(text("x2 = -7/4", 1), Some("-7/4"));
        assert_eq!(text("run 43 desc", 1), Some("desc"));
        assert_eq!(text("move 0 4 17", 0), Some("0 4 17"));
        assert_eq!(text("_ R", 0), Some("_"));
        assert_eq!(parse(&forms, "acc -35").and_then(|(_, fields)| fields.int(0)), Some(-35));
        assert!(parse(&forms, "link -").is_some());
        for wrong in ["acc -0", "run 1 up", "4 R", "move ", "x1 = 1/", "link"] {
            assert!(parse(&forms, wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn the_grammar_names_every_form() {
        assert_eq!(
            gbnf(&["cmp <nat> <nat>", "done"]).lines().next(),
            Some(r#"action ::= "cmp " nat " " nat | "done""#)
        );
    }
}
