//! Expressions in one variable x, and the templates of their derivatives, as prefix terms.

use std::collections::HashMap;
use std::fmt;

use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prefix_term::{self, Symbol as _, Term};

/// A node of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// The variable.
    X,
    /// A constant.
    Integer(i64),
    /// The sum of two operands.
    Add,
    /// The first operand minus the second.
    Sub,
    /// The product of two operands.
    Mul,
    /// The first operand divided by the second.
    Div,
    /// A power with a constant exponent, which is not a node.
    Power(i64),
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The exponential function.
    Exp,
    /// The natural logarithm.
    Ln,
    /// The derivative of a node, in templates.
    Derivative(usize),
    /// The subexpression at a node, in templates.
    Given(usize),
}

/// Symbols of an expression in a state.
pub const SYMBOLS_MAX: usize = 10_000;

/// An expression in prefix form.
pub type Expression = Term<Symbol>;

impl prefix_term::Symbol for Symbol {
    fn arity(&self) -> usize {
        match self {
            Self::X | Self::Integer(_) | Self::Derivative(_) | Self::Given(_) => 0,
            Self::Power(_) | Self::Sin | Self::Cos | Self::Exp | Self::Ln => 1,
            Self::Add | Self::Sub | Self::Mul | Self::Div => 2,
        }
    }

    fn write(term: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        prefix_term::write_bracketed(term, ' ', f, Self::before, Self::after)
    }

    fn read(text: &str) -> Option<Expression> {
        read(text, SYMBOLS_MAX)
    }
}

fn integer(piece: &str) -> Option<i64> {
    piece.parse::<i64>().ok().filter(|value| value.unsigned_abs() < NUMBER_LIMIT)
}

impl Symbol {
    fn before(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X => f.write_str("x"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Derivative(node) => write!(f, "d{node}"),
            Self::Given(node) => write!(f, "e{node}"),
            Self::Add => f.write_str("(+ "),
            Self::Sub => f.write_str("(- "),
            Self::Mul => f.write_str("(* "),
            Self::Div => f.write_str("(/ "),
            Self::Power(_) => f.write_str("(^ "),
            Self::Sin => f.write_str("(sin "),
            Self::Cos => f.write_str("(cos "),
            Self::Exp => f.write_str("(exp "),
            Self::Ln => f.write_str("(ln "),
        }
    }

    fn after(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Power(exponent) => write!(f, " {exponent})"),
            _ => f.write_str(")"),
        }
    }

    fn of(piece: &str) -> Option<Self> {
        let node = |number: &str| number.parse().ok();
        Some(match piece {
            "x" => Self::X,
            "+" => Self::Add,
            "-" => Self::Sub,
            "*" => Self::Mul,
            "/" => Self::Div,
            // Its exponent comes after its argument.
            "^" => Self::Power(0),
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "exp" => Self::Exp,
            "ln" => Self::Ln,
            _ => match piece.split_at_checked(1)? {
                ("d", number) => Self::Derivative(node(number)?),
                ("e", number) => Self::Given(node(number)?),
                _ => Self::Integer(integer(piece)?),
            },
        })
    }

    /// Returns whether the symbol occurs in templates only.
    pub fn is_reference(self) -> bool {
        matches!(self, Self::Derivative(_) | Self::Given(_))
    }
}

/// Reads an expression or a template of at most `max` symbols.
pub fn read(text: &str, max: usize) -> Option<Expression> {
    let mut symbols: Vec<Symbol> = Vec::new();
    // Places of the powers that are read, each with its bracket depth.
    let (mut powers, mut depth) = (Vec::new(), 0usize);

    for piece in prefix_term::pieces(text) {
        match (piece, powers.last()) {
            ("(", _) => depth += 1,
            (")", _) => depth = depth.checked_sub(1)?,
            // After the argument of a power, at the depth of its bracket, comes the exponent.
            (piece, Some((place, at))) if *at == depth && symbols.len() > place + 1 => {
                symbols[*place] = Symbol::Power(integer(piece)?);
                powers.pop();
            }
            (piece, _) => {
                let symbol = Symbol::of(piece)?;
                if matches!(symbol, Symbol::Power(_)) {
                    powers.push((symbols.len(), depth));
                }
                symbols.push(symbol);
            }
        }

        if symbols.len() > max {
            return None;
        }
    }

    prefix_term::only_form(symbols, text)
}

/// The degree of a template in the derivatives that it names: every term has one such factor where
/// it is 1. `None` where the parts do not fit together.
pub fn degree(template: &[Symbol]) -> Option<u64> {
    // Read from the right, so that a symbol finds its arguments on the stack, the first on top.
    let mut degrees: Vec<u64> = Vec::new();

    for symbol in template.iter().rev() {
        let degree = match symbol {
            Symbol::Derivative(_) => 1,
            Symbol::X | Symbol::Integer(_) | Symbol::Given(_) => 0,
            Symbol::Add | Symbol::Sub => {
                degrees.pop().filter(|left| degrees.pop() == Some(*left))?
            }
            Symbol::Mul => degrees.pop()?.checked_add(degrees.pop()?)?,
            Symbol::Div => degrees.pop().filter(|_| degrees.pop() == Some(0))?,
            Symbol::Power(_) | Symbol::Sin | Symbol::Cos | Symbol::Exp | Symbol::Ln => {
                degrees.pop().filter(|argument| *argument == 0)?
            }
        };
        degrees.push(degree);
    }

    degrees.pop()
}

/// Returns whether two terms are the same but for the order of the sides of + and *.
pub fn are_rearranged(left: &[Symbol], right: &[Symbol]) -> bool {
    // Subterms that are the same get the same number, smallest first.
    let mut numbers: HashMap<(Symbol, [usize; 2]), usize> = HashMap::new();
    let mut number = |term: &[Symbol]| {
        // Read from the right, so that a symbol finds its arguments on the stack, the first on top.
        let mut stack = Vec::new();
        for symbol in term.iter().rev() {
            let mut arguments = [usize::MAX; 2];
            for argument in arguments.iter_mut().take(symbol.arity()) {
                *argument = stack.pop()?;
            }
            if matches!(symbol, Symbol::Add | Symbol::Mul) {
                arguments.sort_unstable();
            }
            let next = numbers.len();
            stack.push(*numbers.entry((*symbol, arguments)).or_insert(next));
        }
        stack.pop().filter(|_| stack.is_empty())
    };

    let (left, right) = (number(left), number(right));
    left.is_some() && left == right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sums_and_products_may_be_turned_round() {
        let rearranged = |left: &str, right: &str| {
            let read = |text| read(text, 100).expect("a term");
            are_rearranged(&read(left), &read(right))
        };
        assert!(rearranged("(+ (* d0 e1) (* e0 d1))", "(+ (* d1 e0) (* d0 e1))"));
        assert!(rearranged("(* (- x 1) (sin (+ x 2)))", "(* (sin (+ 2 x)) (- x 1))"));
        for (left, right) in [
            ("(- x 1)", "(- 1 x)"),
            ("(/ x 2)", "(/ 2 x)"),
            ("(+ x (+ 1 2))", "(+ (+ x 1) 2)"),
            ("(^ x 2)", "(^ x 3)"),
            ("(+ x x)", "(* x x)"),
            ("(sin x)", "x"),
        ] {
            assert!(!rearranged(left, right), "{left} {right}");
        }
    }

    #[test]
    fn only_one_way_of_writing_is_read() {
        for text in [
            "x",
            "-4",
            "(+ x 3)",
            "(^ (sin x) -2)",
            "(* (^ (^ x 2) 3) (/ 1 x))",
            "(- 0 (ln (exp (cos x))))",
        ] {
            assert_eq!(
                read(text, 100).map(|expression| expression.to_string()).as_deref(),
                Some(text)
            );
        }

        for text in [
            "",
            "y",
            "(x)",
            "( x",
            "+ x 3",
            "(+ x  3)",
            "(+ x)",
            "(+ x 3 4)",
            "(sin x",
            "(^ x)",
            "(^ x x)",
            "(^ 2 x 2)",
            "(^ x 2 3)",
            "05",
            "+5",
            "x x",
            "(+ x 9007199254740992)",
            "d",
            "e01",
            "(^ 3)",
            "^",
            "(^ (x) 2)",
            "()",
        ] {
            assert_eq!(read(text, 100), None, "{text:?}");
        }

        assert_eq!(read(&"(sin ".repeat(100_000), 1_000_000), None);
        assert_eq!(read(&"(".repeat(100_000), 100), None);
        assert!(
            read(&format!("{}x{}", "(sin ".repeat(50_000), ")".repeat(50_000)), 100_000).is_some()
        );
    }
}
