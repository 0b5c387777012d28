//! Parses GBNF as llama.cpp does.
//!
//! A rule ends with its line, unless the line ends inside a group or right after `::=` or `|`. The
//! last definition of a rule wins. Refuses what llama.cpp accepts and then never matches, overflows
//! on or repeats endlessly: classes and ranges without a character, `{3,2}`, bounds above
//! [`REPETITIONS_MAX`]. Tokens (`<think>`) are not supported.

use std::cell::Cell;
use std::collections::HashMap;

use super::char_class::CharClass;
use super::error::GrammarError;
use super::syntax::{Expression, Rule, Syntax};

/// Highest bound of a repetition, as in llama.cpp.
const REPETITIONS_MAX: u32 = 2000;
/// Deepest nesting of groups and repetitions, because parsing and compiling recurse.
const NESTING_MAX: usize = 128;

pub(super) fn parse(text: &str) -> Result<Syntax, GrammarError> {
    let mut parser = Parser {
        text,
        at: 0,
        counted_to: Cell::new((0, 1)),
        depth: 0,
        rules: Vec::new(),
        places: HashMap::new(),
    };

    parser.skip_space(true);
    while parser.peek().is_some() {
        parser.rule()?;
    }

    let root = parser.places.get("root").copied().ok_or(GrammarError::NoRoot)?;

    let defined = parser.rules.into_iter().map(|rule| match rule.body {
        Some(body) => Ok(Rule { name: rule.name.to_owned(), line: rule.line, body }),
        None => Err(GrammarError::Undefined { line: rule.line, rule: rule.name.to_owned() }),
    });
    Ok(Syntax { rules: defined.collect::<Result<_, _>>()?, root })
}

/// A rule that was used, with its body once defined.
struct Named<'g> {
    name: &'g str,
    /// The line of its definition, else of its first use.
    line: usize,
    body: Option<Expression>,
}

struct Parser<'g> {
    text: &'g str,
    at: usize,
    /// An earlier position, and its line.
    counted_to: Cell<(usize, usize)>,
    /// Open groups.
    depth: usize,
    rules: Vec<Named<'g>>,
    places: HashMap<&'g str, usize>,
}

/// An expression with the depth of its nesting.
type Nested = (Expression, usize);

impl<'g> Parser<'g> {
    fn rest(&self) -> &'g str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'g str {
        let rest = self.rest();
        let taken = &rest[..rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// The current line, from 1; counted from the position of the previous call.
    fn line(&self) -> usize {
        let (from, line) = self.counted_to.get();
        let line = line + self.text[from..self.at].matches('\n').count();
        self.counted_to.set((self.at, line));
        line
    }

    fn expected(&self, expected: &'static str) -> GrammarError {
        const SHOWN: usize = 20;
        let shown: String =
            self.rest().chars().take_while(|c| !matches!(c, '\n' | '\r')).take(SHOWN).collect();

        let found = match (self.peek(), shown.is_empty()) {
            (None, _) => "the end".to_owned(),
            (Some(_), true) => "the end of the line".to_owned(),
            (Some(_), false) => format!("`{shown}`"),
        };
        GrammarError::Syntax { line: self.line(), expected, found }
    }

    fn skip_space(&mut self, also_newlines: bool) {
        loop {
            self.take_while(|byte| {
                matches!(byte, b' ' | b'\t') || also_newlines && matches!(byte, b'\r' | b'\n')
            });
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|byte| !matches!(byte, b'\r' | b'\n'));
        }
    }

    /// Skips the space between the parts of a rule; a line may end only inside a group.
    fn skip_inside(&mut self) {
        self.skip_space(self.depth > 0);
    }

    fn name(&mut self) -> &'g str {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    fn place_of(&mut self, name: &'g str, line: usize) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            self.rules.push(Named { name, line, body: None });
            self.rules.len() - 1
        })
    }

    fn rule(&mut self) -> Result<(), GrammarError> {
        let line = self.line();
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected("the name of a rule (letters, digits, `-`)"));
        }

        let place = self.place_of(name, line);
        self.skip_space(false);
        if !self.take("::=") {
            return Err(self.expected("`::=`"));
        }

        self.skip_space(true);
        let (body, _) = self.alternatives()?;
        if !matches!(self.peek(), None | Some('\r' | '\n')) {
            return Err(self.expected("a part of a rule or the end of its line"));
        }
        self.skip_space(true);

        // A later definition replaces an earlier one.
        self.rules[place].line = line;
        self.rules[place].body = Some(body);
        Ok(())
    }

    fn alternatives(&mut self) -> Result<Nested, GrammarError> {
        let (first, mut depth) = self.sequence()?;
        let mut all = vec![first];
        while self.take("|") {
            self.skip_space(true);
            let (next, inner) = self.sequence()?;
            depth = depth.max(inner);
            all.push(next);
        }
        Ok((if all.len() == 1 { all.remove(0) } else { Expression::Either(all) }, depth))
    }

    fn sequence(&mut self) -> Result<Nested, GrammarError> {
        let mut parts: Vec<Nested> = Vec::new();
        loop {
            if let Some((min, max)) = self.repetition()? {
                // A repetition applies to the part before it.
                let Some((what, depth)) = parts.pop() else {
                    return Err(self.expected("something in front of a repetition"));
                };
                let depth = self.deeper(depth)?;
                parts.push((Expression::Repeat { what: Box::new(what), min, max }, depth));
            } else if let Some(part) = self.part()? {
                parts.push(part);
            } else {
                break;
            }
            self.skip_inside();
        }

        let depth = parts.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok((Expression::Sequence(parts.into_iter().map(|(part, _)| part).collect()), depth))
    }

    fn deeper(&self, depth: usize) -> Result<usize, GrammarError> {
        if depth + self.depth >= NESTING_MAX {
            return Err(GrammarError::Nesting { line: self.line(), max: NESTING_MAX });
        }
        Ok(depth + 1)
    }

    fn part(&mut self) -> Result<Option<Nested>, GrammarError> {
        let line = self.line();
        let part = match self.peek() {
            Some('"') => self.literal()?,
            Some('[') => self.class()?,
            Some('.') => {
                self.at += 1;
                Expression::Class(CharClass::default().other_sequences())
            }
            Some('(') => {
                self.at += 1;
                // Checked before the recursion, which is what the limit is for.
                self.deeper(0)?;
                self.depth += 1;
                self.skip_inside();
                let (inner, depth) = self.alternatives()?;
                self.depth -= 1;
                if !self.take(")") {
                    return Err(self.expected("`)`"));
                }
                return Ok(Some((inner, self.deeper(depth)?)));
            }
            Some('<' | '!') => return Err(GrammarError::Token { line }),
            Some(c) if c.is_ascii_alphanumeric() || c == '-' => {
                let name = self.name();
                Expression::Rule(self.place_of(name, line))
            }
            _ => return Ok(None),
        };
        Ok(Some((part, 0)))
    }

    fn literal(&mut self) -> Result<Expression, GrammarError> {
        self.at += 1;
        let mut text = String::new();
        while !self.take("\"") {
            let line = self.line();
            let code = self.character("`\"`")?;
            let character = char::from_u32(code).filter(|c| *c != '\0');
            text.push(character.ok_or(GrammarError::NoCharacter { line, code })?);
        }
        Ok(Expression::Text(text))
    }

    fn class(&mut self) -> Result<Expression, GrammarError> {
        let from = self.at;
        let line = self.line();
        self.at += 1;
        let is_negated = self.take("^");
        let mut characters = CharClass::default();
        let mut count = 0_usize;
        while !self.take("]") {
            let start = self.at;
            let low = self.character("`]`")?;
            let mut high = low;
            // A `-` before the end is literal.
            if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.at += 1;
                high = self.character("`]`")?;
            }
            if high < low {
                return Err(GrammarError::EmptyClass {
                    line,
                    class: format!("`{}`", &self.text[start..self.at]),
                });
            }
            characters.add(low, high);
            count += 1;
        }

        let sequences =
            if is_negated { characters.other_sequences() } else { characters.sequences() };
        if count == 0 || sequences.is_empty() {
            return Err(GrammarError::EmptyClass {
                line,
                class: format!("`{}`", &self.text[from..self.at]),
            });
        }
        Ok(Expression::Class(sequences))
    }

    /// A character of a literal or class; `end` is what else is allowed there.
    fn character(&mut self, end: &'static str) -> Result<u32, GrammarError> {
        let Some(c) = self.peek() else { return Err(self.expected(end)) };
        if c != '\\' {
            self.at += c.len_utf8();
            return Ok(u32::from(c));
        }

        let escaped = self.rest()[1..].chars().next();
        let digits = match escaped {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | 'n' | 'r' | 't')) => {
                self.at += 2;
                let meant = match c {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    c => c,
                };
                return Ok(u32::from(meant));
            }
            _ => {
                return Err(self.expected(
                    "one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xNN \\uNNNN \\UNNNNNNNN",
                ));
            }
        };

        let hex = self
            .rest()
            .get(2..2 + digits)
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let code = code.ok_or_else(|| {
            self.expected("an escape with 2 (\\x), 4 (\\u) or 8 (\\U) hexadecimal digits")
        })?;
        self.at += 2 + digits;
        Ok(code)
    }

    /// The bounds of a repetition, if one comes next.
    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>)>, GrammarError> {
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted().map(Some),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(bounds))
    }

    fn counted(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        let line = self.line();
        self.at += 1;
        self.skip_inside();
        let min = self.number()?.ok_or_else(|| self.expected("a number of repetitions"))?;
        self.skip_inside();
        if self.take("}") {
            return Ok((min, Some(min)));
        }
        if !self.take(",") {
            return Err(self.expected("`,` or `}`"));
        }

        self.skip_inside();
        let max = self.number()?;
        self.skip_inside();
        if !self.take("}") {
            return Err(self.expected("`}`"));
        }

        match max {
            Some(max) if max < min => Err(GrammarError::Reversed { line, min, max }),
            max => Ok((min, max)),
        }
    }

    fn number(&mut self) -> Result<Option<u32>, GrammarError> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(number) if number <= REPETITIONS_MAX => Ok(Some(number)),
            _ => Err(GrammarError::Repetitions {
                line: self.line(),
                count: digits.to_owned(),
                max: REPETITIONS_MAX,
            }),
        }
    }
}
