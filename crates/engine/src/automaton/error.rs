//! Grammar errors.

/// Why a grammar cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// The text is not GBNF.
    #[error("line {line}: expected {expected}, found {found}")]
    Syntax {
        /// Line of the grammar, from 1.
        line: usize,
        /// What is allowed there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A construct of llama.cpp's that is not supported.
    #[error("line {line}: tokens (`<…>`, `!<…>`) are not supported, write their text")]
    Token {
        /// Line of the grammar, from 1.
        line: usize,
    },
    /// A code point that is not allowed in a text: NUL, a surrogate, or above U+10FFFF.
    #[error("line {line}: U+{code:04X} is not a character that a text can contain")]
    NoCharacter {
        /// Line of the grammar, from 1.
        line: usize,
        /// The code point.
        code: u32,
    },
    /// A class, or a range in one, without any character.
    #[error("line {line}: {class} contains no character")]
    EmptyClass {
        /// Line of the grammar, from 1.
        line: usize,
        /// The class or range as it is written.
        class: String,
    },
    /// A repetition whose lower bound is above the upper one.
    #[error("line {line}: repetition {{{min},{max}}} has its bounds reversed")]
    Reversed {
        /// Line of the grammar, from 1.
        line: usize,
        /// The lower bound.
        min: u32,
        /// The upper bound.
        max: u32,
    },
    /// A repetition beyond the bound.
    #[error("line {line}: {count} repetitions are too many, use at most {max}")]
    Repetitions {
        /// Line of the grammar, from 1.
        line: usize,
        /// The number as it is written.
        count: String,
        /// The bound.
        max: u32,
    },
    /// Groups and repetitions nested beyond the bound.
    #[error("line {line}: groups and repetitions are nested deeper than {max}")]
    Nesting {
        /// Line of the grammar, from 1.
        line: usize,
        /// The bound.
        max: usize,
    },
    /// A rule that is used but not defined.
    #[error("line {line}: rule `{rule}` is not defined")]
    Undefined {
        /// Line of its first use, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
    /// There is no start symbol.
    #[error("there is no rule `root`")]
    NoRoot,
    /// A rule that reaches itself before any character.
    #[error("line {line}: rule `{rule}` is left-recursive, put a character before the recursion")]
    LeftRecursion {
        /// Line of the grammar where the rule is defined, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
    /// The expanded repetitions are too large.
    #[error("line {line}: rule `{rule}` is too large with its repetitions expanded, repeat less")]
    TooLarge {
        /// Line of the grammar where the rule is defined, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
}
