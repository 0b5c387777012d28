//! What a grammar says, as a tree.

use regex_syntax::utf8::Utf8Sequence;

/// The rules of a grammar, all of them defined.
#[derive(Debug)]
pub(super) struct Syntax {
    pub(super) rules: Vec<Rule>,
    /// Place of the rule `root`.
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
    /// These bytes; there may be none.
    Text(String),
    /// One character, as the sequences of bytes that it can be.
    Class(Vec<Utf8Sequence>),
    /// The rule at this place.
    Rule(usize),
    Sequence(Vec<Expression>),
    Either(Vec<Expression>),
    Repeat {
        what: Box<Expression>,
        min: u32,
        max: Option<u32>,
    },
}
