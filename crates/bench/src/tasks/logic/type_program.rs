//! Programs of type inference: their nodes in post-order, with the algorithm's work on the way to
//! each.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::simple_type::{Symbol, Type, arrow, base};
use crate::tasks::prefix_term;

/// Nodes of a user's program.
const NODES_MAX: usize = 500;

/// A binder by its number, in the order of the text.
pub type Binder = usize;

/// The kind of a node; its arguments come before it in post-order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A use of this binder.
    Variable(Binder),
    /// A literal of type Int.
    Digit,
    /// A literal of type Bool.
    Truth,
    /// The primitive `add`.
    Add,
    /// The primitive `eq`.
    Eq,
    /// The primitive `not`.
    Not,
    /// An abstraction with this binder.
    Lam(Binder),
    /// An application.
    App,
    /// A definition with this binder.
    Let(Binder),
    /// A conditional.
    If,
}

impl Kind {
    /// Number of arguments.
    pub fn arguments(self) -> usize {
        match self {
            Self::Lam(_) => 1,
            Self::App | Self::Let(_) => 2,
            Self::If => 3,
            _ => 0,
        }
    }

    /// The type of a literal or primitive.
    pub fn declared(self) -> Option<Type> {
        let (int, boolean) = (base(Symbol::Int), base(Symbol::Bool));
        Some(match self {
            Self::Digit => int,
            Self::Truth => boolean,
            Self::Add => arrow(&int, &arrow(&int, &int)),
            Self::Eq => arrow(&int, &arrow(&int, &boolean)),
            Self::Not => arrow(&boolean, &boolean),
            _ => return None,
        })
    }
}

/// The work of the algorithm between the node before and this one.
#[derive(Clone, Debug)]
pub enum Due {
    /// A lam is entered: its binder gets a fresh variable.
    Enter(Binder),
    /// The condition of an if, the latest type, must be Bool.
    Condition,
    /// The definition of a let, the latest type, is generalised over the binders visible there.
    Generalise(Binder, Vec<Binder>),
}

/// A node of a program, and the work before it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Kind of the node.
    pub kind: Kind,
    /// What the algorithm does before it finishes this node, in order.
    pub due: Vec<Due>,
}

/// A program, with its nodes in post-order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Program {
    text: String,
    /// The nodes in post-order.
    pub nodes: Vec<Node>,
    /// Names by binder.
    pub names: Vec<String>,
}

impl From<Program> for String {
    fn from(program: Program) -> Self {
        program.text
    }
}

fn is_name(piece: &str) -> bool {
    let number =
        |digits: &str| digits.bytes().all(|c| c.is_ascii_digit()) && !digits.starts_with('0');
    piece
        .strip_prefix('x')
        .is_some_and(|digits| !digits.is_empty() && digits.len() <= 9 && number(digits))
}

/// The pieces joined by single blanks, with none after `(` or before `)`.
pub fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut before = "(";

    for piece in pieces {
        let blank = if before == "(" || piece == ")" { "" } else { " " };
        write!(text, "{blank}{piece}").expect("invariant: writing to a string succeeds");
        before = piece;
    }
    text
}

/// A bracket that is being read, with the arguments read so far.
struct Open {
    kind: Kind,
    read: usize,
}

#[derive(Default)]
struct Reader {
    nodes: Vec<Node>,
    names: Vec<String>,
    due: Vec<Due>,
    /// Binders around the place, the innermost last.
    scope: Vec<Binder>,
    open: Vec<Open>,
}

impl Reader {
    fn binder(&mut self, name: Option<&str>) -> Option<Binder> {
        self.names.push(name.filter(|name| is_name(name))?.to_owned());
        Some(self.names.len() - 1)
    }

    /// The binders that a name can mean here: those that no inner binder hides.
    fn visible(&self) -> Vec<Binder> {
        let hidden = |place: usize, binder: Binder| {
            self.scope[place + 1..].iter().any(|inner| self.names[*inner] == self.names[binder])
        };
        self.scope
            .iter()
            .enumerate()
            .filter(|(place, binder)| !hidden(*place, **binder))
            .map(|(_, b)| *b)
            .collect()
    }

    fn open<'a>(&mut self, pieces: &mut impl Iterator<Item = &'a str>) -> Option<()> {
        let kind = match pieces.next()? {
            "lam" => {
                let binder = self.binder(pieces.next())?;
                self.scope.push(binder);

                self.due.push(Due::Enter(binder));
                Kind::Lam(binder)
            }

            // A let's binder enters the scope only after the definition, in `finish`.
            "let" => Kind::Let(self.binder(pieces.next())?),
            "app" => Kind::App,
            "if" => Kind::If,
            _ => return None,
        };

        self.open.push(Open { kind, read: 0 });
        Some(())
    }

    fn leaf(&self, piece: &str) -> Option<Kind> {
        Some(match piece {
            "true" | "false" => Kind::Truth,
            "add" => Kind::Add,
            "eq" => Kind::Eq,
            "not" => Kind::Not,
            digit if digit.len() == 1 && digit.bytes().all(|c| c.is_ascii_digit()) => Kind::Digit,
            name => Kind::Variable(
                *self.scope.iter().rev().find(|binder| self.names[**binder] == name)?,
            ),
        })
    }

    fn finish(&mut self, kind: Kind) -> Option<()> {
        if self.nodes.len() == NODES_MAX {
            return None;
        }
        self.nodes.push(Node { kind, due: std::mem::take(&mut self.due) });

        let Some(parent) = self.open.last_mut() else { return Some(()) };
        parent.read += 1;

        match (parent.kind, parent.read) {
            (Kind::If, 1) => self.due.push(Due::Condition),
            (Kind::Let(binder), 1) => {
                self.due.push(Due::Generalise(binder, self.visible()));
                self.scope.push(binder);
            }
            _ => {}
        }
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let Open { kind, read } = self.open.pop()?;
        if read != kind.arguments() {
            return None;
        }

        if matches!(kind, Kind::Lam(_) | Kind::Let(_)) {
            self.scope.pop();
        }
        self.finish(kind)
    }
}

fn read(text: &str) -> Option<Program> {
    let mut reader = Reader::default();
    let mut pieces = prefix_term::pieces(text);

    while let Some(piece) = pieces.next() {
        match piece {
            "(" => reader.open(&mut pieces)?,
            ")" => reader.close()?,
            _ => {
                let kind = reader.leaf(piece)?;
                reader.finish(kind)?;
            }
        }

        // Each open bracket will be a node, so their number is limited too.
        let over = reader.open.is_empty();
        if reader.open.len() > NODES_MAX || over && pieces.next().is_some() {
            return None;
        }
    }

    let whole = reader.open.is_empty()
        && !reader.nodes.is_empty()
        && joined(prefix_term::pieces(text)) == text;
    whole.then(|| Program { text: text.to_owned(), nodes: reader.nodes, names: reader.names })
}

impl TryFrom<String> for Program {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        read(&text).ok_or_else(|| {
            format!(
                "is not a closed prefix expression with single blanks, of at most {NODES_MAX} nodes and binders x1, x2, …"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_programs_with_single_blanks_are_read() {
        for text in [
            "4",
            "(lam x1 x1)",
            "(let x1 (lam x2 x2) (app x1 (if true 1 2)))",
            "(lam x1 (lam x1 x1))",
        ] {
            assert_eq!(read(text).map(String::from).as_deref(), Some(text));
        }
        for text in [
            "",
            "x1",
            "(lam x1 x2)",
            "(let x1 x1 2)",
            "(app add)",
            "(app add 1 2)",
            "(app  add 1)",
            "( app add 1)",
            "12",
            "(lam y y)",
            "(lam x01 x01)",
            "4 4",
            "(if true 1)",
            "(lam x1 x1",
            "()",
            "(4)",
            "(lam",
            ")",
            "(lam (x1) x1)",
        ] {
            assert!(read(text).is_none(), "{text:?}");
        }

        assert!(read(&"(".repeat(100_000)).is_none());
        assert!(read(&"(lam x1 ".repeat(100_000)).is_none());
    }
}
