//! Bounded regular expressions from clients. The engine has neither look-around nor back-references
//! and runs in linear time.

use regex::{Regex, RegexBuilder};

use super::error::{Fault, quoted};
use super::limits::{PATTERN_BYTES_MAX, PATTERN_SIZE_MAX};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// A bound on its compiled size in KiB.
    kib: u64,
}

fn compile(pattern: &str, size_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(size_max)
        .dfa_size_limit(4 * PATTERN_SIZE_MAX)
        .nest_limit(50)
        .build()
}

impl Pattern {
    /// A pattern that may match anywhere in a text.
    pub fn anywhere(pattern: &str) -> Result<Self, Fault> {
        Fault::unless_short("the pattern", pattern.len(), PATTERN_BYTES_MAX)?;

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
                "count less in its repetitions, and write `[a-z]` or `(?-u:\\w)` instead of `\\w`, which is every \
                 letter there is",
            )),
            Err(error) => Err(Fault::new(
                format!("not a regular expression: {}", quoted(&error)),
                "write it in the syntax of the Rust crate `regex`, which has no look-around and no back references",
            )),
        }
    }

    /// A pattern that must match the whole text.
    pub fn whole(pattern: &str) -> Result<Self, Fault> {
        // Compiled alone first, so that it cannot close the group added around it.
        Self::anywhere(pattern)?;
        Self::anywhere(&format!(r"\A(?:{pattern})\z"))
    }

    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
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
    fn invalid_or_large_patterns_are_refused_with_the_reason() {
        for (pattern, part) in [
            ("a)|(?:b", "not a regular expression"),
            ("(?x)a # comment", "not a regular expression"),
            ("[a", "not a regular expression"),
            (r"(?=a)b", "not a regular expression"),
            (r"(a)\1", "not a regular expression"),
            (r"\w{1000}", "too large"),
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
        assert!(work("a") < work("a{100}") && work("a{100}") < work(r"\w+ \w+"));
    }
}
