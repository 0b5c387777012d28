//! Terms as flat lists of symbols in prefix order, shared between states. Nothing recurses: nesting
//! cannot overflow the stack.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A symbol of a term language.
pub trait Symbol: Copy + PartialEq + fmt::Debug {
    /// The number of arguments that follow.
    fn arity(&self) -> usize;

    /// Writes a term in the language's syntax.
    fn write(term: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Parses a term that a state may hold.
    fn read(text: &str) -> Option<Term<Self>>
    where
        Self: Sized;
}

/// A reference-counted term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term<S>(Arc<[S]>);

impl<S> Deref for Term<S> {
    type Target = [S];
    fn deref(&self) -> &[S] {
        &self.0
    }
}

impl<S> From<Vec<S>> for Term<S> {
    fn from(symbols: Vec<S>) -> Self {
        Self(symbols.into())
    }
}

impl<S: Symbol> From<&[S]> for Term<S> {
    fn from(symbols: &[S]) -> Self {
        Self(symbols.into())
    }
}

impl<S: Symbol> fmt::Display for Term<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write(self, f)
    }
}

impl<S: Symbol> Serialize for Term<S> {
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, S: Symbol> Deserialize<'de> for Term<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refuse = || {
            let start: String = text.chars().take(40).collect();
            serde::de::Error::custom(format!(
                "{start:?} is not a term of the task, written in its one form"
            ))
        };
        S::read(&text).ok_or_else(refuse)
    }
}

/// Returns whether the symbols are exactly one term.
pub fn is_term<S: Symbol>(symbols: &[S]) -> bool {
    // Subterms that are still to come.
    let mut open = 1usize;

    for symbol in symbols {
        if open == 0 {
            return false;
        }
        open = open - 1 + symbol.arity();
    }

    open == 0
}

/// The end of the subterm that begins at `start`.
pub fn end_of<S: Symbol>(term: &[S], start: usize) -> usize {
    let mut open = 1;
    let mut at = start;
    while open > 0 {
        open = open - 1 + term[at].arity();
        at += 1;
    }
    at
}

/// The arguments of the first symbol.
pub fn arguments<S: Symbol>(term: &[S]) -> impl Iterator<Item = &[S]> {
    let mut rest = &term[1..];
    std::iter::from_fn(move || {
        let (argument, after) =
            rest.split_at(if rest.is_empty() { return None } else { end_of(rest, 0) });
        rest = after;
        Some(argument)
    })
}

/// The nesting depth, counting symbols with arguments.
pub fn depth<S: Symbol>(term: &[S]) -> usize {
    let (mut deepest, mut open) = (0, Vec::new());

    for symbol in term {
        if symbol.arity() > 0 {
            open.push(symbol.arity());
            deepest = deepest.max(open.len());
            continue;
        }

        // A leaf completes every symbol whose last argument ends with it.
        while let Some(left) = open.last_mut() {
            *left -= 1;
            if *left > 0 {
                break;
            }
            open.pop();
        }
    }

    deepest
}

/// Writes a term in bracketed syntax: `before` and `after` write what surrounds a symbol's
/// arguments.
pub fn write_bracketed<S: Symbol>(
    term: &[S],
    separator: char,
    f: &mut fmt::Formatter<'_>,
    before: impl Fn(&S, &mut fmt::Formatter<'_>) -> fmt::Result,
    after: impl Fn(&S, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    use fmt::Write as _;

    // Symbols with unwritten arguments, and the number of these.
    let mut open: Vec<(&S, usize)> = Vec::new();
    for symbol in term {
        before(symbol, f)?;
        if symbol.arity() > 0 {
            open.push((symbol, symbol.arity()));
            continue;
        }

        // A leaf completes every symbol whose last argument ends with it.
        while let Some((whole, left)) = open.last_mut() {
            *left -= 1;
            if *left > 0 {
                f.write_char(separator)?;
                break;
            }
            after(whole, f)?;
            open.pop();
        }
    }

    Ok(())
}

/// Splits a text into brackets, commas and the words between them; blanks separate.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(' ');
        // A bracket or comma at the start is a piece of its own.
        let end = rest
            .find(['(', ')', ',', ' '])
            .unwrap_or(rest.len())
            .max(usize::from(!rest.is_empty()));

        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The term of these symbols, if `text` is its canonical form.
pub fn only_form<S: Symbol>(symbols: Vec<S>, text: &str) -> Option<Term<S>> {
    let term = is_term(&symbols).then(|| Term::from(symbols))?;
    (term.to_string() == text).then_some(term)
}
