//! The syntax tree of a grammar.

use regex_syntax::utf8::Utf8Sequence;

/// The rules of a grammar, all of them defined.
#[derive(Debug)]
pub(super) struct Syntax {
    pub(super) rules: Vec<Rule>,
    /// Index of the rule `root`.
    pub(super) root: usize,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    /// Line where it is defined, from 1.
    pub(super) line: usize,
    pub(super) body: Expression,
}

#[derive(Debug)]
pub(super) enum Expression {
    /// A literal; it may be empty.
    Text(String),
    /// One character of a class, as its possible byte sequences.
    Class(Vec<Utf8Sequence>),
    /// A rule, by index.
    Rule(usize),
    Sequence(Vec<Expression>),
    Either(Vec<Expression>),
    Repeat {
        what: Box<Expression>,
        min: u32,
        max: Option<u32>,
    },
}
