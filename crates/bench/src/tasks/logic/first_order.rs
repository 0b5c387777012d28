//! First-order terms over f/2, g/1, h/3, k/2, the constants a, b, c and variables X0, X1, …,
//! written without blanks.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::prefix_term::{self, Term};

/// A variable by its number, written `X0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable(pub u32);

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "X{}", self.0)
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_prefix('X').and_then(|digits| digits.parse().ok());
        number.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a variable, such as \"X0\""))
        })
    }
}

/// A function's or constant's letter, or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A function, `f`, `g`, `h` or `k`, or a constant, `a`, `b` or `c`.
    Letter(char),
    /// A variable.
    Variable(Variable),
}

/// The most symbols that a term, and all terms of a state together, may have.
pub const SYMBOLS_MAX: usize = 20_000;

/// A first-order term in prefix form.
pub type FirstOrder = Term<Symbol>;

impl prefix_term::Symbol for Symbol {
    fn arity(&self) -> usize {
        match self {
            Self::Letter('h') => 3,
            Self::Letter('f' | 'k') => 2,
            Self::Letter('g') => 1,
            _ => 0,
        }
    }

    fn write(term: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = |symbol: &Self, f: &mut fmt::Formatter<'_>| match symbol {
            Self::Letter(letter) => {
                write!(f, "{letter}{}", if symbol.arity() > 0 { "(" } else { "" })
            }
            Self::Variable(variable) => write!(f, "{variable}"),
        };
        prefix_term::write_bracketed(term, ',', f, before, |_, f| f.write_str(")"))
    }

    fn read(text: &str) -> Option<FirstOrder> {
        read(text, SYMBOLS_MAX)
    }
}

/// Reads a term of at most `max` symbols.
pub fn read(text: &str, max: usize) -> Option<FirstOrder> {
    let mut symbols = Vec::new();
    for piece in prefix_term::pieces(text).filter(|piece| !matches!(*piece, "(" | ")" | ",")) {
        if symbols.len() == max {
            return None;
        }
        symbols.push(match piece {
            "f" | "g" | "h" | "k" | "a" | "b" | "c" => Symbol::Letter(piece.chars().next()?),
            _ => Symbol::Variable(Variable(piece.strip_prefix('X')?.parse().ok()?)),
        });
    }

    prefix_term::only_form(symbols, text)
}

/// The variables of a term, as often as they occur.
pub fn variables(term: &[Symbol]) -> impl Iterator<Item = Variable> {
    term.iter().filter_map(|symbol| match symbol {
        Symbol::Variable(variable) => Some(*variable),
        Symbol::Letter(_) => None,
    })
}

/// Returns whether the variable occurs in the term.
pub fn occurs(variable: Variable, term: &[Symbol]) -> bool {
    term.contains(&Symbol::Variable(variable))
}

/// The term with `value` for the variable.
pub fn substituted(term: &FirstOrder, variable: Variable, value: &[Symbol]) -> FirstOrder {
    if !occurs(variable, term) {
        // Shares the symbols.
        return term.clone();
    }
    let mut symbols = Vec::new();

    for symbol in term.iter() {
        if *symbol == Symbol::Variable(variable) {
            symbols.extend_from_slice(value);
        } else {
            symbols.push(*symbol);
        }
    }

    symbols.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_way_of_writing_is_read() {
        for text in ["a", "X0", "f(X0,k(X1,X2))", "h(a,b,g(c))"] {
            assert_eq!(read(text, 100).map(|term| term.to_string()).as_deref(), Some(text));
        }
        for text in [
            "", "d", "X", "X01", "X-1", "f(a)", "f(a,b,c)", "f(a, b)", "g a", "g(a", "g((a))",
            "a,b", "fab", "a(b)",
        ] {
            assert_eq!(read(text, 100), None, "{text:?}");
        }
        assert_eq!(read(&"g(".repeat(100_000), 1_000_000), None);
        assert!(
            read(&format!("{}a{}", "g(".repeat(100_000), ")".repeat(100_000)), 1_000_000).is_some()
        );
    }
}
