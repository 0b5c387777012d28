//! What can be wrong with a grammar.

/// Why a grammar cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GrammarError {
    /// The text is not GBNF.
    #[error("line {line}: {expected} is expected, found {found}")]
    Syntax {
        /// Line of the grammar, from 1.
        line: usize,
        /// What could stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A form of llama.cpp's that is not supported.
    #[error("line {line}: tokens (`<…>`, `!<…>`) are not supported, write their text")]
    Token {
        /// Line of the grammar, from 1.
        line: usize,
    },
    /// A number that no text can hold as a character: NUL, a surrogate, or above U+10FFFF.
    #[error("line {line}: U+{code:04X} is no character that a text can have")]
    NoCharacter {
        /// Line of the grammar, from 1.
        line: usize,
        /// The number.
        code: u32,
    },
    /// A class, or a range in one, that no character is in.
    #[error("line {line}: no character is in {class}")]
    EmptyClass {
        /// Line of the grammar, from 1.
        line: usize,
        /// The class or range as it is written.
        class: String,
    },
    /// A repetition that ends before it begins.
    #[error("line {line}: at least {min} and at most {max} times cannot be")]
    Reversed {
        /// Line of the grammar, from 1.
        line: usize,
        /// The lower bound.
        min: u32,
        /// The upper bound.
        max: u32,
    },
    /// A repetition beyond the bound.
    #[error("line {line}: {count} repetitions are too many, at most {max} can be counted")]
    Repetitions {
        /// Line of the grammar, from 1.
        line: usize,
        /// The number as it is written.
        count: String,
        /// The bound.
        max: u32,
    },
    /// Groups and repetitions inside one another beyond the bound.
    #[error("line {line}: groups and repetitions are nested deeper than {max}")]
    Nesting {
        /// Line of the grammar, from 1.
        line: usize,
        /// The bound.
        max: usize,
    },
    /// A rule that is named and not there.
    #[error("line {line}: rule `{rule}` is not defined")]
    Undefined {
        /// Line of the grammar where it is first named, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
    /// There is nothing to begin with.
    #[error("there is no rule `root`")]
    NoRoot,
    /// A rule that comes to itself before any character.
    #[error("line {line}: rule `{rule}` is left-recursive, write the recursion behind a character")]
    LeftRecursion {
        /// Line of the grammar where the rule is defined, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
    /// The repetitions, written out, are too much.
    #[error("line {line}: rule `{rule}` is too large with its repetitions written out, repeat less")]
    TooLarge {
        /// Line of the grammar where the rule is defined, from 1.
        line: usize,
        /// The rule's name.
        rule: String,
    },
}
