//! Arithmetic expressions over natural numbers with + - * / and brackets: the answers of the
//! 24-game.

use super::arithmetic_search::{Operator, Value};

/// The numbers in a text, in order. One that is too large for the game is -1.
pub fn numbers(text: &str) -> impl Iterator<Item = i64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    digits.map(|run| run.parse::<u8>().map_or(-1, i64::from))
}

/// The exact value of an expression; `None` if the text is not an expression or divides by 0.
/// Its numbers must be those of a game, which keeps the arithmetic in range.
pub fn value(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.as_bytes() };
    let value = reader.sum()?;
    reader.peek().is_none().then_some(value)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// The next character that is not a blank.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let character = self.peek()?;
        self.rest = &self.rest[1..];
        Some(character)
    }

    /// Parts joined by operators of one rank, from the left.
    fn chain(
        &mut self,
        operators: [Operator; 2],
        part: fn(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let mut value = part(self)?;
        while let Some(operator) =
            self.peek().and_then(Operator::of).filter(|operator| operators.contains(operator))
        {
            self.next();
            value = operator.apply(value, part(self)?)?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<Value> {
        self.chain([Operator::Plus, Operator::Minus], Self::product)
    }

    fn product(&mut self) -> Option<Value> {
        self.chain([Operator::Times, Operator::Over], Self::factor)
    }

    fn factor(&mut self) -> Option<Value> {
        if self.peek()? == b'(' {
            self.next();
            let value = self.sum()?;
            return (self.next()? == b')').then_some(value);
        }

        let length = self.rest.iter().take_while(|c| c.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok().map(Value::from_integer)
    }
}
