//! Types of the lambda calculus with Int and Bool, type variables t0, t1, …, and their unification.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::prefix_term::{self, Term};

/// The most symbols of a type: substitution can make types grow exponentially.
pub const TYPE_MAX: usize = 1_000;

/// A type variable by its number, written `t0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable(pub u32);

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
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
        let number = text.strip_prefix('t').and_then(|digits| digits.parse().ok());
        number.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a variable, such as \"t0\""))
        })
    }
}

/// A node of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The type of digits.
    Int,
    /// The type of `true` and `false`.
    Bool,
    /// A function's type: its argument's type follows, then its result's.
    Arrow,
    /// A type variable of the run: t0, t1, …
    Variable(Variable),
    /// A type variable of a finished type: a, b, …
    Renamed(u32),
}

/// A type in prefix form.
pub type Type = Term<Symbol>;

impl prefix_term::Symbol for Symbol {
    fn arity(&self) -> usize {
        if *self == Self::Arrow { 2 } else { 0 }
    }

    /// `l -> r`, right-associative, with parentheses around a left side that is an arrow.
    fn write(term: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arrows that are being written: true for a left side that is still being written, and true
        // for an open bracket.
        let mut open: Vec<(bool, bool)> = Vec::new();
        for symbol in term {
            match symbol {
                Self::Int => f.write_str("Int")?,
                Self::Bool => f.write_str("Bool")?,
                Self::Variable(variable) => write!(f, "{variable}")?,
                Self::Renamed(number) => f.write_str(&letters(*number))?,
                Self::Arrow => {
                    let bracket = open.last().is_some_and(|(left, _)| *left);
                    if bracket {
                        f.write_str("(")?;
                    }
                    open.push((true, bracket));
                    continue;
                }
            }

            // A part that is complete ends the left side of the innermost arrow, or that whole
            // arrow.
            while let Some((left, bracket)) = open.last_mut() {
                if *left {
                    *left = false;
                    f.write_str(" -> ")?;
                    break;
                }
                if *bracket {
                    f.write_str(")")?;
                }
                open.pop();
            }
        }
        Ok(())
    }

    fn read(text: &str) -> Option<Type> {
        read(text)
    }
}

/// a, b, …, z, a1, b1, …
pub fn letters(number: u32) -> String {
    let letter = char::from(b'a' + u8::try_from(number % 26).expect("invariant: below 26"));
    if number < 26 { letter.to_string() } else { format!("{letter}{}", number / 26) }
}

/// The type of one symbol without arguments.
pub fn base(symbol: Symbol) -> Type {
    vec![symbol].into()
}

/// The type variable of this number.
pub fn variable(number: u32) -> Type {
    base(Symbol::Variable(Variable(number)))
}

/// The type of functions from `left` to `right`.
pub fn arrow(left: &[Symbol], right: &[Symbol]) -> Type {
    [&[Symbol::Arrow], left, right].concat().into()
}

/// Reads a type as types print, with variables `t<k>`.
pub fn read(text: &str) -> Option<Type> {
    read_with(text, |_| None)
}

/// Reads a type as types print, with variables `t<k>` and the caller's names, which take
/// precedence.
pub fn read_with(text: &str, named: impl Fn(&str) -> Option<Symbol>) -> Option<Type> {
    let mut symbols = Vec::new();
    // Starts of the parts whose brackets are open, and of the latest part.
    let (mut open, mut start) = (Vec::new(), 0);

    for piece in prefix_term::pieces(text) {
        match piece {
            "(" => open.push(symbols.len()),
            // What is in brackets is one part again.
            ")" => start = open.pop()?,
            // The part before the arrow becomes its left side.
            "->" => symbols.insert(start.min(symbols.len()), Symbol::Arrow),
            _ => {
                start = symbols.len();
                symbols.push(match (named(piece), piece) {
                    (Some(symbol), _) => symbol,
                    (None, "Int") => Symbol::Int,
                    (None, "Bool") => Symbol::Bool,
                    (None, _) => Symbol::Variable(Variable(piece.strip_prefix('t')?.parse().ok()?)),
                });
            }
        }

        if symbols.len().max(open.len()) > TYPE_MAX {
            return None;
        }
    }

    prefix_term::only_form(symbols, text)
}

/// The variables of a type, as often as they occur.
pub fn variables(symbols: &[Symbol]) -> impl Iterator<Item = Variable> {
    symbols.iter().filter_map(|symbol| match symbol {
        Symbol::Variable(variable) => Some(*variable),
        _ => None,
    })
}

/// Why two types have no unifier here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The types differ in a constructor.
    Mismatch,
    /// A variable occurs in the type that it would have to be.
    Occurs,
    /// A type is longer than [`TYPE_MAX`]: this says nothing about the program.
    TooLong,
}

/// Variables with the types that they were bound to, each resolved at that moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Substitution(pub BTreeMap<Variable, Type>);

impl Substitution {
    /// Returns whether no variable leads back to itself, so that types can be resolved.
    pub fn is_acyclic(&self) -> bool {
        let bound = |to: &Type| {
            variables(to).filter(|variable| self.0.contains_key(variable)).collect::<Vec<_>>()
        };

        // The number of variables that each bound one waits for.
        let mut waiting: BTreeMap<Variable, usize> = BTreeMap::new();
        let mut waits_for: BTreeMap<Variable, Vec<Variable>> = BTreeMap::new();

        for (variable, to) in &self.0 {
            let needed = bound(to);
            waiting.insert(*variable, needed.len());
            needed
                .into_iter()
                .for_each(|other| waits_for.entry(other).or_default().push(*variable));
        }

        // Resolves, one after the other, the variables that wait for nothing; a cycle is never
        // reached.
        let mut free: Vec<Variable> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(v, _)| *v).collect();

        let mut resolved = 0;
        while let Some(variable) = free.pop() {
            resolved += 1;
            for user in waits_for.remove(&variable).unwrap_or_default() {
                let count = waiting.entry(user).or_default();
                *count -= 1;
                if *count == 0 {
                    free.push(user);
                }
            }
        }

        resolved == self.0.len()
    }

    /// The type with all bound variables replaced, again and again.
    pub fn resolve(&self, symbols: &[Symbol]) -> Result<Type, Failure> {
        let mut resolved = Vec::new();
        // What is left to read, innermost last.
        let mut rest: Vec<&[Symbol]> = vec![symbols];

        while let Some(symbols) = rest.pop() {
            let Some((symbol, after)) = symbols.split_first() else { continue };
            // Empty rests are dropped, so that long lists do not look like deep nesting.
            if !after.is_empty() {
                rest.push(after);
            }

            match symbol {
                Symbol::Variable(variable) if self.0.contains_key(variable) => {
                    rest.push(&self.0[variable]);
                }
                _ => resolved.push(*symbol),
            }

            if resolved.len().max(rest.len()) > TYPE_MAX {
                return Err(Failure::TooLong);
            }
        }

        Ok(resolved.into())
    }

    /// Makes two types equal. After a failure the substitution is unspecified.
    pub fn unify(&mut self, left: &[Symbol], right: &[Symbol]) -> Result<(), Failure> {
        let mut pairs: Vec<(Type, Type)> = vec![(left.into(), right.into())];
        while let Some((left, right)) = pairs.pop() {
            let (left, right) = (self.resolve(&left)?, self.resolve(&right)?);
            if left == right {
                continue;
            }

            match (left[0], right[0]) {
                (Symbol::Variable(variable), _) => self.bind(variable, right)?,
                (_, Symbol::Variable(variable)) => self.bind(variable, left)?,
                (Symbol::Arrow, Symbol::Arrow) => {
                    let sides: Vec<(Type, Type)> = prefix_term::arguments(&left)
                        .zip(prefix_term::arguments(&right))
                        .map(|(left, right)| (left.into(), right.into()))
                        .collect();
                    // The left sides are to come first: they go on top.
                    pairs.extend(sides.into_iter().rev());
                }
                _ => return Err(Failure::Mismatch),
            }
        }

        Ok(())
    }

    fn bind(&mut self, variable: Variable, to: Type) -> Result<(), Failure> {
        if to.contains(&Symbol::Variable(variable)) {
            return Err(Failure::Occurs);
        }
        self.0.insert(variable, to);
        Ok(())
    }
}

/// The type with its variables among `chosen` replaced by others, in order of first appearance.
pub fn renamed(
    symbols: &[Symbol],
    chosen: impl Fn(Variable) -> bool,
    mut fresh: impl FnMut(usize) -> Symbol,
) -> (Type, usize) {
    let mut names: Vec<(Variable, Symbol)> = Vec::new();
    let replace = |symbol: &Symbol| match symbol {
        Symbol::Variable(variable) if chosen(*variable) => {
            let known = names.iter().find(|(name, _)| name == variable).map(|(_, with)| *with);
            known.unwrap_or_else(|| {
                let with = fresh(names.len());
                names.push((*variable, with));
                with
            })
        }
        _ => *symbol,
    };

    let symbols: Vec<Symbol> = symbols.iter().map(replace).collect();
    (symbols.into(), names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_way_of_writing_is_read() {
        for text in [
            "Int",
            "t0 -> Int",
            "(t0 -> t1) -> t2 -> Bool",
            "((t0 -> t1) -> t2) -> t12",
            "t0 -> (Int -> t3) -> t2",
        ] {
            assert_eq!(read(text).map(|found| found.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "int",
            "t",
            "t01",
            "(Int)",
            "Int -> (Int -> Int)",
            "(Int -> Int",
            "Int ->",
            "-> Int",
            "Int->Int",
            "()",
            "Int Int",
            "(Int -> Int))",
            "((Int -> Int)) -> Int",
            "a -> a",
            ") -> (",
            "-> ->",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }

        assert_eq!(read(&"(".repeat(100_000)), None);
        assert_eq!(read(&"t0 -> ".repeat(100_000)), None);
    }

    #[test]
    fn resolution_of_doubling_types_stops_in_time() {
        let mut substitution = Substitution::default();
        for k in 0..60 {
            let next = variable(k + 1);
            substitution.0.insert(Variable(k), arrow(&next, &next));
        }
        assert_eq!(substitution.resolve(&variable(0)), Err(Failure::TooLong));
        assert_eq!(substitution.unify(&variable(0), &variable(61)), Err(Failure::TooLong));
    }
}
