//! Bounded regular expressions from clients. The engine has neither look-around nor back-references
//! and runs in linear time. `\d`, `\s`, `\w` and `\b` are those of ASCII, as in RE2, which CEL has.

use std::convert::Infallible;
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, Assertion, AssertionKind, Ast, ClassPerl, ClassPerlKind, ClassSetItem, Visitor,
};
use serde_json::{Map, Value};

use super::error::{Fault, quoted};
use super::limits::{GROUPS_SIZE_MAX, PATTERN_BYTES_MAX, PATTERN_SIZE_MAX};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// A bound on its compiled size in KiB.
    kib: u64,
}

/// Nesting depth of a pattern's groups and classes.
const NEST_MAX: u32 = 50;

fn compile(pattern: &str, size_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(size_max)
        .dfa_size_limit(4 * PATTERN_SIZE_MAX)
        // The expansion of a class is one level deeper.
        .nest_limit(NEST_MAX + 1)
        .build()
}

/// The places of classes that mean all of Unicode in the crate `regex` but only ASCII in RE2, each
/// with its replacement.
#[derive(Default)]
struct Ascii(Vec<(Range<usize>, &'static str)>);

impl Ascii {
    fn class(&mut self, class: &ClassPerl) {
        let written = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "[0-9]",
            (ClassPerlKind::Digit, true) => "[^0-9]",
            (ClassPerlKind::Space, false) => r"[\t\n\f\r\x20]",
            (ClassPerlKind::Space, true) => r"[^\t\n\f\r\x20]",
            (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
            (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
        };
        self.0.push((class.span.start.offset..class.span.end.offset, written));
    }

    fn assertion(&mut self, assertion: &Assertion) {
        let written = match assertion.kind {
            AssertionKind::WordBoundary => r"(?-u:\b)",
            AssertionKind::NotWordBoundary => r"(?-u:\B)",
            AssertionKind::WordBoundaryStart => r"(?-u:\b{start})",
            AssertionKind::WordBoundaryEnd => r"(?-u:\b{end})",
            AssertionKind::WordBoundaryStartAngle => r"(?-u:\<)",
            AssertionKind::WordBoundaryEndAngle => r"(?-u:\>)",
            AssertionKind::WordBoundaryStartHalf => r"(?-u:\b{start-half})",
            AssertionKind::WordBoundaryEndHalf => r"(?-u:\b{end-half})",
            AssertionKind::StartLine
            | AssertionKind::EndLine
            | AssertionKind::StartText
            | AssertionKind::EndText => return,
        };
        self.0.push((assertion.span.start.offset..assertion.span.end.offset, written));
    }
}

impl Visitor for Ascii {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        match ast {
            Ast::ClassPerl(class) => self.class(class),
            Ast::Assertion(assertion) => self.assertion(assertion),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        if let ClassSetItem::Perl(class) = item {
            self.class(class);
        }
        Ok(())
    }
}

/// The pattern with its classes and word boundaries written out as those of ASCII.
fn in_ascii(pattern: &str) -> Result<String, Fault> {
    let parsed = ParserBuilder::new().nest_limit(NEST_MAX).build().parse(pattern);
    let parsed = parsed.map_err(|error| invalid(&quoted(&error)))?;
    let Ok(Ascii(mut found)) = ast::visit(&parsed, Ascii::default());

    // Replaced from the end, so that earlier places do not move.
    found.sort_by_key(|(place, _)| place.start);
    let mut written = pattern.to_owned();
    for (place, ascii) in found.into_iter().rev() {
        written.replace_range(place, ascii);
    }
    Ok(written)
}

fn invalid(reason: &str) -> Fault {
    Fault::new(
        format!("not a regular expression: {reason}"),
        "write it in the syntax of the Rust crate `regex`, which has no look-around and no back \
         references",
    )
}

impl Pattern {
    /// A pattern that may match anywhere in a text.
    pub fn anywhere(pattern: &str) -> Result<Self, Fault> {
        Fault::unless_short("the pattern", pattern.len(), PATTERN_BYTES_MAX)?;

        let pattern = &in_ascii(pattern)?;

        // The smallest of these limits under which it compiles bounds its size.
        for kib in [1, 4, 16, 64] {
            if let Ok(regex) = compile(pattern, kib << 10) {
                return Ok(Self { regex, kib: kib as u64 });
            }
        }

        match compile(pattern, PATTERN_SIZE_MAX) {
            Ok(regex) => Ok(Self { regex, kib: (PATTERN_SIZE_MAX >> 10) as u64 }),
            Err(regex::Error::CompiledTooBig(_)) => Err(Fault::new(
                "the pattern is too large when it is compiled",
                "count less in its repetitions, and write `[a-z]` instead of `\\p{L}`, which is \
                 every letter there is",
            )),
            Err(error) => Err(invalid(&quoted(&error))),
        }
    }

    /// A pattern that must match the whole text.
    pub fn whole(pattern: &str) -> Result<Self, Fault> {
        // Compiled alone first, so that it cannot close the group added around it.
        Self::anywhere(pattern)?;
        Self::anywhere(&format!(r"\A(?:{pattern})\z"))
    }

    /// Returns whether the text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns whether it has named groups.
    pub fn has_groups(&self) -> bool {
        self.regex.capture_names().flatten().next().is_some()
    }

    /// The pattern, if it is small enough for [`Pattern::groups`].
    pub fn with_groups(self) -> Result<Self, Fault> {
        if self.kib <= (GROUPS_SIZE_MAX >> 10) as u64 {
            return Ok(self);
        }
        Err(Fault::new(
            "the pattern is too large for one with named groups when it is compiled",
            "count less in its repetitions, and write `[a-z]` instead of `\\p{L}`",
        ))
    }

    /// What the named groups match, without those that match nothing; `None` if the text does not
    /// match.
    pub fn groups(&self, text: &str) -> Option<Map<String, Value>> {
        // The faster question first.
        if !self.matches(text) {
            return None;
        }
        let found = self.regex.captures(text)?;
        let named = self.regex.capture_names().flatten();
        let groups = named.filter_map(|name| {
            Some((name.to_owned(), Value::String(found.name(name)?.as_str().to_owned())))
        });
        Some(groups.collect())
    }

    /// A bound on the work of a match, in units per byte of text: the engine may visit the whole
    /// program at each byte.
    pub fn work_per_byte(&self) -> u64 {
        self.kib
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_pattern_matches_from_end_to_end() {
        let matches =
            |pattern: &str, text: &str| Pattern::whole(pattern).expect("valid").matches(text);
        assert!(matches("a|ab", "ab") && matches("", "") && matches("(?i)yes", "YES"));
        for (pattern, text) in [("a|ab", "abc"), ("b", "ab"), ("a", "a\n"), ("", "x")] {
            assert!(!matches(pattern, text), "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn digits_letters_and_blanks_are_those_of_ascii() {
        for (pattern, text, expected) in [
            (r"\d{4}", "1984", true),
            // Arabic digits.
            (r"\d{4}", "\u{661}\u{669}\u{668}\u{664}", false),
            (r"\D", "\u{661}", true),
            (r"\D", "7", false),
            (r"[\d,]+", "1,2", true),
            (r"[\d,]+", "1,\u{662}", false),
            (r"[^\d]", "\u{661}", true),
            (r"[\W\d]+", "\u{e9}7-", true),
            (r"[\w&&[^_]]+", "aZ9", true),
            (r"[\w&&[^_]]+", "_", false),
            (r"\w+", "a_Z9", true),
            (r"\w", "\u{e9}", false),
            (r"\W", "\u{e9}", true),
            (r"\s+", " \t\n\u{c}\r", true),
            (r"\s", "\u{b}", false),
            (r"\s", "\u{a0}", false),
            (r"\S", "\u{a0}", true),
            (r"a\b.*", "a\u{e9}", true),
            (r"a\B.*", "a\u{e9}", false),
            (r"\u{e9}\B", "\u{e9}", true),
            (r"\\d\d", "\\d4", true),
            (r"(?x) \d # a \d", "4", true),
            (r"(?i:\d\p{Lu}.)", "4\u{e9}\u{e9}", true),
        ] {
            // A comment would swallow the bracket.
            let end = if pattern.starts_with("(?x)") { "\n" } else { "" };
            let pattern = format!("^(?:{pattern}{end})$");
            let read = Pattern::anywhere(&pattern).expect("valid");
            assert_eq!(read.matches(text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn invalid_or_large_patterns_are_refused_with_the_reason() {
        for (pattern, part) in [
            ("a)|(?:b", "not a regular expression"),
            ("(?x)a # comment", "not a regular expression"),
            ("[a", "not a regular expression"),
            (r"(?=a)b", "not a regular expression"),
            (r"(a)\1", "not a regular expression"),
            (r"\pL{1000}", "too large"),
            ("((((a{20}){20}){20}){20}){20}", "too large"),
            (&"a".repeat(1001), "1001 bytes"),
            (&"(".repeat(900), "not a regular expression"),
            (&format!("{}a{}", "(".repeat(400), ")".repeat(400)), "not a regular expression"),
        ] {
            let fault = Pattern::whole(pattern).expect_err(pattern);
            assert!(fault.problem.contains(part), "{pattern}: {fault:?}");
        }
    }

    #[test]
    fn larger_patterns_count_for_more_work() {
        let work = |pattern: &str| Pattern::anywhere(pattern).expect("valid").work_per_byte();
        assert_eq!(work("a"), 1);
        assert!(work("a") < work("a{100}") && work("a{100}") < work(r"\pL+ \pL+"));
    }
}
