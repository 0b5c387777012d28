//! Regular expressions: letters a–d, juxtaposition, `|`, postfix `*`, `+`, `?`, parentheses.

use std::fmt;

use crate::tasks::TaskRng;

/// The letters of expressions and texts.
pub const ALPHABET: &[u8] = b"abcd";

/// The number of times that an operand may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// `*`: any number of times.
    Star,
    /// `+`: at least once.
    Plus,
    /// `?`: at most once.
    Optional,
}

impl Quantifier {
    fn of(symbol: u8) -> Option<Self> {
        match symbol {
            b'*' => Some(Self::Star),
            b'+' => Some(Self::Plus),
            b'?' => Some(Self::Optional),
            _ => None,
        }
    }

    fn symbol(self) -> char {
        match self {
            Self::Star => '*',
            Self::Plus => '+',
            Self::Optional => '?',
        }
    }
}

/// A node of the tree without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// This letter, `a` to `d`.
    Letter(u8),
    /// Two operands, one after the other.
    Concatenation,
    /// One of two operands.
    Alternation,
    /// One operand, repeated.
    Quantified(Quantifier),
}

/// The nodes of an expression in post-order; `None` if it is not an expression.
pub fn post_order(regex: &str) -> Option<Vec<Node>> {
    let mut parser = Parser { rest: regex.as_bytes(), nodes: Vec::with_capacity(2 * regex.len()) };
    parser.alternation()?;
    parser.rest.is_empty().then_some(parser.nodes)
}

/// Recursive descent. Callers limit the length of the expression, and with it the depth.
struct Parser<'r> {
    rest: &'r [u8],
    nodes: Vec<Node>,
}

impl Parser<'_> {
    fn take(&mut self, symbol: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[symbol])?;
        Some(())
    }

    fn alternation(&mut self) -> Option<()> {
        self.concatenation()?;
        while self.take(b'|').is_some() {
            self.concatenation()?;
            self.nodes.push(Node::Alternation);
        }
        Some(())
    }

    fn concatenation(&mut self) -> Option<()> {
        self.quantified()?;
        while self.rest.first().is_some_and(|c| *c == b'(' || ALPHABET.contains(c)) {
            self.quantified()?;
            self.nodes.push(Node::Concatenation);
        }
        Some(())
    }

    fn quantified(&mut self) -> Option<()> {
        if self.take(b'(').is_some() {
            self.alternation()?;
            self.take(b')')?;
        } else {
            let (letter, rest) = self.rest.split_first()?;
            if !ALPHABET.contains(letter) {
                return None;
            }
            self.nodes.push(Node::Letter(*letter));
            self.rest = rest;
        }

        while let Some(quantifier) = self.rest.first().and_then(|c| Quantifier::of(*c)) {
            self.nodes.push(Node::Quantified(quantifier));
            self.rest = &self.rest[1..];
        }
        Some(())
    }
}

/// An expression; its `Display` writes it with the fewest parentheses that keep the tree.
pub enum Tree {
    /// This letter, `a` to `d`.
    Letter(u8),
    /// The first expression, then the second.
    Concatenation(Box<Self>, Box<Self>),
    /// One of the two expressions.
    Alternation(Box<Self>, Box<Self>),
    /// The expression, repeated.
    Quantified(Box<Self>, Quantifier),
}

impl Tree {
    /// A random tree with this many leaves.
    pub fn drawn(leaves: usize, rng: &mut TaskRng) -> Self {
        let node = if leaves == 1 {
            Self::Letter(rng.one_of(ALPHABET))
        } else {
            let left = rng.size(1, leaves - 1);
            // Drawn before the operands: the order of draws is part of the benchmark.
            let concatenation = rng.chance(2, 3);
            let left_operand = Box::new(Self::drawn(left, rng));
            let right_operand = Box::new(Self::drawn(leaves - left, rng));
            if concatenation {
                Self::Concatenation(left_operand, right_operand)
            } else {
                Self::Alternation(left_operand, right_operand)
            }
        };

        if rng.chance(1, 4) {
            let quantifier =
                rng.one_of(&[Quantifier::Star, Quantifier::Plus, Quantifier::Optional]);
            Self::Quantified(Box::new(node), quantifier)
        } else {
            node
        }
    }

    /// Appends a random word of the expression. Words longer than `max` are cut off.
    pub fn sample(&self, word: &mut String, max: usize, rng: &mut TaskRng) {
        // Nested repetitions could grow without a bound.
        if word.len() > max {
            return;
        }
        match self {
            Self::Letter(letter) => word.push(char::from(*letter)),
            Self::Concatenation(left, right) => {
                left.sample(word, max, rng);
                right.sample(word, max, rng);
            }
            Self::Alternation(left, right) => {
                let chosen = if rng.chance(1, 2) { left } else { right };
                chosen.sample(word, max, rng);
            }
            Self::Quantified(operand, quantifier) => {
                if *quantifier == Quantifier::Plus {
                    operand.sample(word, max, rng);
                }
                while rng.chance(1, 2) {
                    operand.sample(word, max, rng);
                    if *quantifier == Quantifier::Optional {
                        break;
                    }
                }
            }
        }
    }

    /// The precedence of the node: 0 alternation, 1 concatenation, 2 all others.
    fn rank(&self) -> u8 {
        match self {
            Self::Alternation(..) => 0,
            Self::Concatenation(..) => 1,
            _ => 2,
        }
    }

    /// Writes the node, in parentheses unless it binds at least as tightly as `rank`.
    fn write(&self, rank: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rank() < rank { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both operators associate to the left: a right operand of the same kind needs parentheses.
        match self {
            Self::Letter(letter) => write!(f, "{}", char::from(*letter)),
            Self::Concatenation(left, right) => {
                left.write(1, f)?;
                right.write(2, f)
            }
            Self::Alternation(left, right) => {
                left.write(0, f)?;
                f.write_str("|")?;
                right.write(1, f)
            }
            Self::Quantified(operand, quantifier) => {
                operand.write(2, f)?;
                write!(f, "{}", quantifier.symbol())
            }
        }
    }
}
