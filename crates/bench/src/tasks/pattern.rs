//! One-line action grammars: from the same forms come the parser, the GBNF grammar and a regular
//! expression.
//!
//! A form is literal text with fields in angle brackets: `<nat>` a natural number below 2^53
//! without leading zeros; `<int>` the same with an optional minus sign (no `-0`); `<big>` and
//! `<bigint>` are the same without a limit; `<digit>` is one digit; `<rat>` an integer or a
//! fraction, `<ratio>` one that is not negative; `<nats>` and `<ints>` are numbers separated by
//! single spaces; `<nat?>` and `<nats?>` may be `-` instead; `<asc|desc>` is one of the words;
//! `<[a-d]{1,2}>` one to two characters of a class, `<[a-d]+>` one or more.

use num_bigint::BigInt;

use super::rational::Rational;

mod grammar;

pub use grammar::{Bounds, form_regex, gbnf, gbnf_of_lines, gbnf_within, regex};

/// Integers in JSON stay exact below this bound.
pub const NUMBER_LIMIT: u64 = 1 << 53;

/// A parsed field of an action line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A non-negative number below [`NUMBER_LIMIT`].
    Nat(u64),
    /// A number between -[`NUMBER_LIMIT`] and [`NUMBER_LIMIT`].
    Int(i64),
    /// `-` where a number was optional.
    Absent,
    /// A word, or text of a class.
    Text(&'a str),
}

/// The most fields that a form may have, so that a parsed line needs no allocation.
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

    /// The integer at place `index`; `None` for a field of another kind.
    pub fn int(&self, index: usize) -> Option<i64> {
        match self.fields[..self.count].get(index)? {
            Field::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The numbers of a `<nats>` or `<nats?>` at place `index`; none for `-`.
    pub fn nats<N: TryFrom<u64>>(&self, index: usize) -> Option<Vec<N>> {
        match self.fields[..self.count].get(index)? {
            Field::Absent => Some(Vec::new()),
            Field::Text(text) => {
                text.split(' ').map(|digits| N::try_from(nat_of(digits)?).ok()).collect()
            }
            _ => None,
        }
    }

    /// The numbers of an `<ints>` at place `index`.
    pub fn ints(&self, index: usize) -> Option<Vec<i64>> {
        self.text(index)?.split(' ').map(int_of).collect()
    }

    /// The number of a `<big>` or `<bigint>` at place `index`.
    pub fn bigint(&self, index: usize) -> Option<BigInt> {
        self.text(index)?.parse().ok()
    }

    /// The number of a `<nat?>` at place `index`: `Some(None)` for `-`.
    pub fn optional<N: TryFrom<u64>>(&self, index: usize) -> Option<Option<N>> {
        match self.fields[..self.count].get(index)? {
            Field::Absent => Some(None),
            Field::Nat(value) => N::try_from(*value).ok().map(Some),
            _ => None,
        }
    }

    /// The rational at place `index`, if it is in lowest terms.
    pub fn rational(&self, index: usize) -> Option<Rational> {
        self.text(index)?.parse().ok()
    }

    /// The text at place `index`; `None` for a field of another kind.
    pub fn text(&self, index: usize) -> Option<&'a str> {
        match self.fields[..self.count].get(index)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A part of a form.
pub enum Part<'p> {
    /// Text that stands in the line as it is.
    Literal(&'p str),
    /// A field, without its angle brackets.
    Field(&'p str),
}

/// Forms are so short that a plain loop is faster than `str::find`.
fn find(text: &str, byte: u8) -> Option<usize> {
    text.bytes().position(|other| other == byte)
}

/// The parts of a form, in order.
pub fn parts(form: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = form;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inside) = rest.strip_prefix('<') {
            // A class may contain the closing bracket.
            let class = if inside.starts_with('[') { find(inside, b']').unwrap_or(0) } else { 0 };
            let end = class
                + find(&inside[class..], b'>').expect("invariant: forms close their brackets");
            rest = &inside[end + 1..];
            return Some(Part::Field(&inside[..end]));
        }

        let (literal, after) = rest.split_at(find(rest, b'<').unwrap_or(rest.len()));
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
        // `-0` and `-01` are not integers.
        Some(digits) => nat_len(digits).filter(|_| !digits.starts_with('0')).map(|len| len + 1),
        None => nat_len(text),
    }
}

fn nat_of(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|value| *value < NUMBER_LIMIT)
}

fn int_of(digits: &str) -> Option<i64> {
    digits.parse::<i64>().ok().filter(|value| value.unsigned_abs() < NUMBER_LIMIT)
}

/// Length of numbers separated by single spaces, each measured by `number`.
fn list_len(text: &str, number: fn(&str) -> Option<usize>) -> Option<usize> {
    let mut len = number(text)?;
    while text[len..].starts_with(' ') {
        match number(&text[len + 1..]) {
            Some(more) => len += 1 + more,
            // A space that no number follows belongs to the rest of the form.
            None => break,
        }
    }
    Some(len)
}

/// `[a-d]{1,2}` or `[a-d]+` as (ranges, min, max).
fn class_of(field: &str) -> (&str, usize, usize) {
    if let Some(class) = field.strip_suffix("]+") {
        return (&class[1..], 1, usize::MAX);
    }
    let (class, count) = field.split_once("]{").expect("invariant: a class has a count");

    let count = count.trim_end_matches('}');
    let (min, max) = count.split_once(',').unwrap_or((count, count));
    let number = |text: &str| text.parse().expect("invariant: counts of a class are numbers");
    (&class[1..], number(min), number(max))
}

fn in_class(ranges: &str, c: char) -> bool {
    let mut rest = ranges.chars();
    while let Some(first) = rest.next() {
        // `a-d` is a range; a hyphen at the end of the class stands for itself.
        let mut range = rest.clone();
        if range.next() == Some('-')
            && let Some(last) = range.next()
        {
            if (first..=last).contains(&c) {
                return true;
            }
            rest = range;
        } else if first == c {
            return true;
        }
    }
    false
}

fn take<'a>(field: &str, text: &'a str) -> Option<(Field<'a>, &'a str)> {
    let cut = |len: usize| (&text[..len], &text[len..]);
    let as_text = |len: usize| {
        let (taken, rest) = cut(len);
        (Field::Text(taken), rest)
    };

    match field {
        "nat?" | "nats?" if text.starts_with('-') => Some((Field::Absent, &text[1..])),
        "nat" | "nat?" => {
            let (digits, rest) = cut(nat_len(text)?);
            Some((Field::Nat(nat_of(digits)?), rest))
        }
        "int" => {
            let (digits, rest) = cut(int_len(text)?);
            Some((Field::Int(int_of(digits)?), rest))
        }
        "digit" => {
            let digit = text.bytes().next().filter(u8::is_ascii_digit)?;
            Some((Field::Nat(u64::from(digit - b'0')), &text[1..]))
        }
        "big" => Some(as_text(nat_len(text)?)),
        "bigint" => Some(as_text(int_len(text)?)),
        // Lowest terms are checked when the number is read.
        "rat" | "ratio" => {
            let mut len = if field == "rat" { int_len(text)? } else { nat_len(text)? };
            if text[len..].starts_with('/') {
                len += 1 + nat_len(&text[len + 1..])?;
            }
            Some(as_text(len))
        }
        "nats" | "nats?" => Some(as_text(list_len(text, nat_len)?)),
        "ints" => Some(as_text(list_len(text, int_len)?)),
        class if class.starts_with('[') => {
            let (ranges, min, max) = class_of(class);

            let taken = text.chars().take(max).take_while(|c| in_class(ranges, *c));
            let (count, len) =
                taken.fold((0, 0), |(count, len), c| (count + 1, len + c.len_utf8()));

            let (word, rest) = cut(len);
            (count >= min).then_some((Field::Text(word), rest))
        }
        words => {
            // The longest word that fits, so that one word may begin another.
            let word = words
                .split('|')
                .filter(|word| text.starts_with(*word))
                .max_by_key(|word| word.len())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_sign_and_no_leading_zeros() {
        let forms = ["cmp <nat> <nat>"];

        assert!(parse(&forms, "cmp 0 12").is_some());
        for wrong in [
            "cmp 00 1",
            "cmp 01 2",
            "cmp -1 2",
            "cmp 1",
            "cmp 1 2 ",
            " cmp 1 2",
            "cmp  1 2",
            "cmp 1 9007199254740992",
        ] {
            assert!(parse(&forms, wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_every_sort_are_read() {
        let forms = [
            "x<nat> = <rat>",
            "run <nat> <asc|desc>",
            "link <nat?>",
            "move <nats>",
            "<[_0-3]{1}> <L|R>",
            "acc <int>",
        ];

        let text = |line: &'static str, place| {
            parse(&forms, line).and_then(|(_, fields)| fields.text(place))
        };

        assert_eq!(text("x2 = -7/4", 1), Some("-7/4"));
        assert_eq!(text("run 43 desc", 1), Some("desc"));
        assert_eq!(text("move 0 4 17", 0), Some("0 4 17"));
        assert_eq!(text("_ R", 0), Some("_"));
        assert_eq!(parse(&forms, "acc -35").and_then(|(_, fields)| fields.int(0)), Some(-35));
        assert!(parse(&forms, "link -").is_some());
        assert_eq!(
            parse(&["res <ints>"], "res -2 5").and_then(|(_, fields)| fields.ints(0)),
            Some(vec![-2, 5])
        );
        assert_eq!(
            parse(&["set <nats?>"], "set -").and_then(|(_, fields)| fields.nats::<u8>(0)),
            Some(Vec::new())
        );
        assert_eq!(text_of("<[a-z >-]+> end", "a -> b end"), None, "a class takes all that it can");
        assert_eq!(text_of("<[A-Za-z >-]+>", "Int -> a"), Some("Int -> a".to_owned()));
        assert_eq!(
            text_of("<big>", "123456789012345678901234567890").map(|text| text.len()),
            Some(30)
        );

        for wrong in ["acc -0", "run 1 up", "4 R", "move ", "x1 = 1/", "link"] {
            assert!(parse(&forms, wrong).is_none(), "{wrong:?}");
        }
    }

    fn text_of(form: &str, line: &str) -> Option<String> {
        parse(&[form], line).and_then(|(_, fields)| fields.text(0).map(str::to_owned))
    }

    #[test]
    fn the_grammar_names_every_form() {
        assert_eq!(
            gbnf(&["cmp <nat> <nat>", "done"]).lines().next(),
            Some(r#"action ::= "cmp " nat " " nat | "done""#)
        );
    }

    #[test]
    fn listed_lines_are_quoted() {
        assert_eq!(
            gbnf_of_lines(["place 3", "say \"\\\""]),
            "action ::= \"place 3\" | \"say \\\"\\\\\\\"\"\n"
        );
    }
}
