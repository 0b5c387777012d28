//! Lambda terms with De Bruijn indices: an index, (L t), (t u). An index counts the binders between
//! it and its own.

use std::fmt;

use crate::tasks::prefix_term::{self, Symbol as _, Term, end_of};

/// Nodes of a term, in lines and on the way to a normal form.
pub const NODES_MAX: usize = 10_000;
/// Contractions on the way to a normal form.
pub const CONTRACTIONS_MAX: u64 = 1_000;

/// A node of a term: a variable by its de Bruijn index, an abstraction or an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A variable: number of binders between it and its own, from 0.
    Index(u32),
    /// An abstraction; its body follows.
    Lambda,
    /// An application; the function follows, then its argument.
    Apply,
}

/// A lambda term in prefix form, with de Bruijn indices.
pub type LambdaTerm = Term<Symbol>;

impl prefix_term::Symbol for Symbol {
    fn arity(&self) -> usize {
        match self {
            Self::Index(_) => 0,
            Self::Lambda => 1,
            Self::Apply => 2,
        }
    }

    fn write(term: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = |symbol: &Self, f: &mut fmt::Formatter<'_>| match symbol {
            Self::Index(index) => write!(f, "{index}"),
            Self::Lambda => f.write_str("(L "),
            Self::Apply => f.write_str("("),
        };
        prefix_term::write_bracketed(term, ' ', f, before, |_, f| f.write_str(")"))
    }

    fn read(text: &str) -> Option<LambdaTerm> {
        read(text)
    }
}

/// Reads a closed term of at most [`NODES_MAX`] nodes.
pub fn read(text: &str) -> Option<LambdaTerm> {
    let mut symbols = Vec::new();
    let mut pieces = prefix_term::pieces(text).filter(|piece| *piece != ")").peekable();
    while let Some(piece) = pieces.next() {
        symbols.push(match piece {
            "(" if pieces.next_if_eq(&"L").is_some() => Symbol::Lambda,
            "(" => Symbol::Apply,
            _ => Symbol::Index(piece.parse().ok()?),
        });
        if symbols.len() > NODES_MAX {
            return None;
        }
    }

    prefix_term::only_form(symbols, text).filter(|term| is_closed(term))
}

/// Visits the symbols of a term, each with the number of binders around it.
fn each(term: &[Symbol], mut look: impl FnMut(Symbol, u32)) {
    // Lambdas and applications that are open, with the arguments left.
    let mut open: Vec<(Symbol, usize)> = Vec::new();

    let mut binders = 0;
    for symbol in term {
        look(*symbol, binders);
        if symbol.arity() > 0 {
            binders += u32::from(*symbol == Symbol::Lambda);
            open.push((*symbol, symbol.arity()));
            continue;
        }

        while let Some((whole, left)) = open.last_mut() {
            *left -= 1;
            if *left > 0 {
                break;
            }
            binders -= u32::from(*whole == Symbol::Lambda);
            open.pop();
        }
    }
}

/// Returns whether every index is smaller than the number of binders around it.
pub fn is_closed(term: &[Symbol]) -> bool {
    let mut closed = true;
    each(term, |symbol, binders| {
        if let Symbol::Index(index) = symbol {
            closed &= index < binders;
        }
    });
    closed
}

/// Places of the redexes, leftmost outermost first: prefix order is the order of normal reduction.
pub fn redexes(term: &[Symbol]) -> impl Iterator<Item = usize> {
    term.windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == [Symbol::Apply, Symbol::Lambda])
        .map(|(place, _)| place)
}

/// The term after the contraction of the redex at `place`; `None` if it has more than [`NODES_MAX`]
/// nodes.
pub fn contracted(term: &[Symbol], place: usize) -> Option<LambdaTerm> {
    let middle = end_of(term, place + 2);
    let end = end_of(term, middle);
    let (body, argument) = (&term[place + 2..middle], &term[middle..end]);
    // Each use puts the argument in the place of one index. Terms can grow exponentially, so the
    // length is checked before the term is built.
    let mut uses = 0;
    each(body, |symbol, binders| uses += usize::from(symbol == Symbol::Index(binders)));
    let len = term.len() - 2 - argument.len() + uses * argument.len() - uses;
    if len > NODES_MAX {
        return None;
    }

    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(&term[..place]);
    each(body, |symbol, binders| match symbol {
        // The argument moves below more binders: its free indices count them too.
        Symbol::Index(index) if index == binders => each(argument, |symbol, inner| {
            result.push(match symbol {
                Symbol::Index(index) if index >= inner => Symbol::Index(index + binders),
                _ => symbol,
            });
        }),
        Symbol::Index(index) if index > binders => result.push(Symbol::Index(index - 1)),
        _ => result.push(symbol),
    });

    result.extend_from_slice(&term[end..]);
    Some(result.into())
}

/// The normal form by normal order with the number of contractions, if it is reached within these
/// bounds.
pub fn reduced(
    term: &LambdaTerm,
    nodes_max: usize,
    contractions_max: u64,
) -> Option<(LambdaTerm, u64)> {
    let mut term = term.clone();
    let mut contractions = 0;

    while term.len() <= nodes_max {
        let Some(place) = redexes(&term).next() else { return Some((term, contractions)) };
        if contractions == contractions_max {
            return None;
        }
        term = contracted(&term, place)?;
        contractions += 1;
    }
    None
}

/// The normal form by normal order, if it is reached within the bounds of every term.
pub fn normal_form(term: &LambdaTerm) -> Option<LambdaTerm> {
    reduced(term, NODES_MAX, CONTRACTIONS_MAX).map(|(term, _)| term)
}

/// Returns whether some contraction of `before` gives `after`.
pub fn contracts_to(before: &[Symbol], after: &[Symbol]) -> bool {
    let common = before.iter().zip(after).take_while(|(ours, theirs)| ours == theirs).count();
    // What lies before the redex stays as it is.
    redexes(before)
        .take_while(|place| *place <= common)
        .any(|place| contracted(before, place).is_some_and(|contracted| *contracted == *after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_terms_in_one_way_of_writing_are_read() {
        for text in ["(L 0)", "(L (L (1 (0 0))))", "((L 0) (L (0 (L 1))))"] {
            assert_eq!(read(text).map(|term| term.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "0",
            "(L 1)",
            "(L  0)",
            "(L 00)",
            "(L (0))",
            "(L 0",
            "L 0",
            "((L 0))",
            "((L 0)(L 0))",
            "(L 0) (L 0)",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }

        assert_eq!(read(&"(".repeat(100_000)), None);
        assert_eq!(read(&format!("{}0{}", "(L ".repeat(100_000), ")".repeat(100_000))), None);
        assert!(read(&format!("{}0{}", "(L ".repeat(9_000), ")".repeat(9_000))).is_some());
    }

    #[test]
    fn contraction_shifts_the_indices() {
        // λa. (λb. λc. b a c) (a a): the argument's free a counts the binder c, and a in the body
        // loses b.
        let term = read("(L ((L (L ((1 2) 0))) (0 0)))").expect("a term");
        assert_eq!(
            contracted(&term, 1).map(|term| term.to_string()).as_deref(),
            Some("(L (L (((1 1) 1) 0)))")
        );

        let omega = read("((L (0 0)) (L (0 0)))").expect("a term");
        assert!(contracts_to(&omega, &omega) && normal_form(&omega).is_none());

        let growing = read("((L ((0 0) 0)) (L ((0 0) 0)))").expect("a term");
        assert!(normal_form(&growing).is_none());
    }
}
