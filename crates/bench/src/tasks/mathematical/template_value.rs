//! The values of templates of derivatives: references are replaced by their values, and every node
//! that is built is simplified.

use num_bigint::BigInt;

use super::expression::{Expression, SYMBOLS_MAX, Symbol};
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prefix_term::Symbol as _;

/// Why a template has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    TooLong,
    TooLarge,
}

/// Nodes of a value.
pub const NODES_MAX: usize = SYMBOLS_MAX;
/// Nodes on the way to a value, which simplification may take away again.
const NODES_ON_THE_WAY_MAX: usize = 100_000;

const ZERO: Option<Symbol> = Some(Symbol::Integer(0));
const ONE: Option<Symbol> = Some(Symbol::Integer(1));

/// A value that is being built from the left.
#[derive(Default)]
struct Value {
    symbols: Vec<Symbol>,
    /// Integers beyond 2^53: they may disappear again, and only the finished value is bounded. A
    /// value names no nodes, so that `Given(k)` in it can stand for the k-th of these.
    large: Vec<BigInt>,
}

/// The value of a template, where `inserted` gives the value of a reference. Every node is
/// simplified once, when its arguments are complete; inserted values are not simplified again.
pub fn evaluate<'a>(
    template: &[Symbol],
    inserted: impl Fn(Symbol) -> &'a [Symbol],
) -> Result<Expression, NoValue> {
    let mut value = Value::default();
    // Places of the nodes that are built, with the place of the second argument once it begins.
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    for symbol in template {
        if symbol.is_reference() {
            value.symbols.extend_from_slice(inserted(*symbol));
        } else {
            value.symbols.push(*symbol);
        }

        if value.symbols.len() > NODES_ON_THE_WAY_MAX {
            return Err(NoValue::TooLong);
        }

        if symbol.arity() > 0 {
            open.push((value.symbols.len() - 1, None));
            continue;
        }

        while let Some((place, second)) = open.last_mut() {
            if second.is_none() && value.symbols[*place].arity() == 2 {
                *second = Some(value.symbols.len());
                break;
            }
            value.simplify(*place, *second);
            open.pop();
        }
    }

    if value.symbols.len() > NODES_MAX {
        return Err(NoValue::TooLong);
    }

    // An integer that is still beyond 2^53 when the value is complete.
    if value.symbols.iter().any(|symbol| symbol.is_reference()) {
        return Err(NoValue::TooLarge);
    }

    Ok(value.symbols.into())
}

impl Value {
    /// The integer of a symbol that stands alone and is used up.
    fn take(&mut self, symbol: Symbol) -> Option<BigInt> {
        match symbol {
            Symbol::Integer(integer) => Some(integer.into()),
            Symbol::Given(k) => Some(std::mem::take(&mut self.large[k])),
            _ => None,
        }
    }

    /// The symbol of an integer of any size.
    fn symbol(&mut self, integer: BigInt) -> Symbol {
        match i64::try_from(&integer) {
            Ok(small) if small.unsigned_abs() < NUMBER_LIMIT => Symbol::Integer(small),
            _ => {
                self.large.push(integer);
                Symbol::Given(self.large.len() - 1)
            }
        }
    }

    /// Simplifies the node at `place`, whose arguments end the list, by the first rule that fits.
    /// `second` is the place of the second argument.
    fn simplify(&mut self, place: usize, second: Option<usize>) {
        let operator = self.symbols[place];
        // With one argument only the power of 1 is simplified.
        let Some(second) = second else {
            if operator == Symbol::Power(1) {
                self.symbols.remove(place);
            }
            return;
        };

        let alone = |argument: &[Symbol]| match argument {
            [symbol @ (Symbol::Integer(_) | Symbol::Given(_))] => Some(*symbol),
            _ => None,
        };
        let (left, right) =
            (alone(&self.symbols[place + 1..second]), alone(&self.symbols[second..]));

        match (operator, left, right) {
            (Symbol::Add | Symbol::Sub | Symbol::Mul, Some(left), Some(right)) => {
                let Some((left, right)) = self.take(left).zip(self.take(right)) else { return };
                let result = self.symbol(match operator {
                    Symbol::Add => left + right,
                    Symbol::Sub => left - right,
                    _ => left * right,
                });
                self.symbols.truncate(place);
                self.symbols.push(result);
            }
            (Symbol::Mul | Symbol::Div, ZERO, _) | (Symbol::Mul, _, ZERO) => {
                self.symbols.truncate(place);
                self.symbols.push(Symbol::Integer(0));
            }
            (Symbol::Add, ZERO, _) | (Symbol::Mul, ONE, _) => {
                drop(self.symbols.drain(place..second));
            }
            (Symbol::Add | Symbol::Sub, _, ZERO) | (Symbol::Mul | Symbol::Div, _, ONE) => {
                self.symbols.truncate(second);
                self.symbols.remove(place);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::read;
    use super::*;

    #[test]
    fn a_node_is_simplified_once_by_the_first_rule_that_fits() {
        let (x, sum) = (read("x", 9).expect("x"), read("(+ x 0)", 9).expect("a sum"));
        let value = |template: &str| {
            let template = read(template, 100).expect("a template");
            let inserted = |symbol| if symbol == Symbol::Given(0) { &*x } else { &*sum };
            evaluate(&template, inserted).map(|value| value.to_string())
        };

        for (template, expected) in [
            ("(+ 2 (* 3 -4))", "-10"),
            ("(+ 0 d0)", "(+ x 0)"),
            ("(- 0 e0)", "(- 0 x)"),
            ("(- e0 0)", "x"),
            ("(* (^ e0 1) 1)", "x"),
            ("(* (sin e0) (- 1 1))", "0"),
            ("(/ 0 (ln e0))", "0"),
            ("(/ 6 3)", "(/ 6 3)"),
            ("(/ (exp e0) 1)", "(exp x)"),
            ("(^ (+ e0 d0) 2)", "(^ (+ x (+ x 0)) 2)"),
        ] {
            assert_eq!(value(template).as_deref(), Ok(expected), "{template}");
        }

        assert_eq!(value("(* 9007199254740991 2)"), Err(NoValue::TooLarge));
        assert_eq!(value("(+ (* 9007199254740991 9007199254740991) e0)"), Err(NoValue::TooLarge));
        assert_eq!(value("(* (sin e0) (* 0 (* 9007199254740991 2)))").as_deref(), Ok("0"));
        assert_eq!(
            value("(- (* 9007199254740991 9) (* 9007199254740991 8))").as_deref(),
            Ok("9007199254740991")
        );
    }
}
