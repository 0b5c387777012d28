//! What a check that is false had read: the values of the variables in its expression, so that its
//! reason names them. Names of loops have many values and are left out.

use std::borrow::Cow;
use std::io::{self, Write};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use prime_printable::printable_line;
use serde_json::Value;

use crate::error::quoted;
use crate::limits::{READING_CHARS_MAX, READINGS_MAX};

/// Bytes that are written of a value before it is cut to its characters.
const READING_BYTES_MAX: usize = 16 * READING_CHARS_MAX;

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(String),
    Index(usize),
}

/// A variable, or a part of one, as in `answer.moves[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub variable: String,
    parts: Vec<Part>,
}

impl Reading {
    /// The reading that an expression is, if it is no more than that.
    fn of(tree: &IdedExpr) -> Option<Self> {
        match &tree.expr {
            Expr::Ident(name) => Some(Self { variable: name.clone(), parts: Vec::new() }),
            Expr::Select(select) => {
                Some(Self::of(&select.operand)?.with(Part::Field(select.field.clone())))
            }
            Expr::Call(call) if call.func_name == operators::INDEX => {
                let [value, at] = call.args.as_slice() else { return None };
                let part = match &at.expr {
                    Expr::Literal(LiteralValue::Int(at)) => {
                        Part::Index(usize::try_from(*at.inner()).ok()?)
                    }
                    Expr::Literal(LiteralValue::String(field)) => {
                        Part::Field(field.inner().to_owned())
                    }
                    _ => return None,
                };
                Some(Self::of(value)?.with(part))
            }
            _ => None,
        }
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The name as an expression writes it, and its value in that of the variable.
    fn said(&self, value: &Value) -> String {
        let mut name = self.variable.clone();
        let mut found = Some(value);
        for part in &self.parts {
            match part {
                Part::Field(field) => {
                    name = format!("{name}.{field}");
                    found = found.and_then(|value| value.get(field));
                }
                Part::Index(at) => {
                    name = format!("{name}[{at}]");
                    found = found.and_then(|value| value.get(at));
                }
            }
        }

        let name = quoted(&name);
        match found {
            Some(value) => format!("{name} is {}", short(value)),
            None => format!("{name} is missing"),
        }
    }
}

/// The first bytes of a text that is as long as it likes.
#[derive(Default)]
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fit = bytes.len().min(READING_BYTES_MAX - self.0.len());
        self.0.extend_from_slice(&bytes[..fit]);
        Ok(fit)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The beginning of a value as JSON, longer than what is shown of it.
fn beginning(value: &Value) -> String {
    let mut written = Beginning::default();
    // It fails where the value does not fit. An input may have megabytes.
    drop(serde_json::to_writer(&mut written, value));
    String::from_utf8_lossy(&written.0).into_owned()
}

/// A value as JSON on one line; of a long one its beginning and its length.
fn short(value: &Value) -> String {
    let length = match value {
        Value::Array(all) => format!(", {} in all", all.len()),
        Value::Object(all) => format!(", {} fields in all", all.len()),
        Value::String(text) => format!(", {} characters in all", text.chars().count()),
        _ => String::new(),
    };
    let text = beginning(value);
    let text = printable_line(&text);
    match text.char_indices().nth(READING_CHARS_MAX) {
        Some((end, _)) => format!("{}…{length}", &text[..end]),
        None => text.into_owned(),
    }
}

/// The variables, or parts of them, that an expression reads outside of the bodies of its loops.
pub(super) fn readings(tree: &IdedExpr) -> Vec<Reading> {
    let mut all = Vec::new();
    collect(tree, &mut Vec::new(), &mut all);
    all
}

fn collect<'t>(tree: &'t IdedExpr, bound: &mut Vec<&'t str>, all: &mut Vec<Reading>) {
    if let Some(reading) = Reading::of(tree) {
        let is_bound = bound.contains(&reading.variable.as_str());
        if !is_bound && !all.contains(&reading) {
            all.push(reading);
        }
        return;
    }

    match &tree.expr {
        Expr::Select(select) => collect(&select.operand, bound, all),
        Expr::List(list) => list.elements.iter().for_each(|it| collect(it, bound, all)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    collect(&entry.key, bound, all);
                    collect(&entry.value, bound, all);
                }
            }
        }
        Expr::Call(call) => {
            if let Some(target) = &call.target {
                collect(target, bound, all);
            }
            call.args.iter().for_each(|it| collect(it, bound, all));
        }
        Expr::Comprehension(it) => {
            collect(&it.iter_range, bound, all);
            collect(&it.accu_init, bound, all);

            let before = bound.len();
            bound.extend([it.accu_var.as_str(), it.iter_var.as_str()]);
            bound.extend(it.iter_var2.as_deref());
            for part in [&it.loop_cond, &it.loop_step, &it.result] {
                collect(part, bound, all);
            }
            bound.truncate(before);
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

/// What these readings were, such as `answer.a is 7, answer.b is 3`; `None` if `value_of` knows no
/// variable of them.
pub(super) fn said<'v>(
    readings: &[Reading],
    value_of: impl Fn(&str) -> Option<Cow<'v, Value>>,
) -> Option<String> {
    let known = readings.iter().filter_map(|reading| {
        let value = value_of(&reading.variable)?;
        Some(reading.said(value.as_ref()))
    });
    let said: Vec<String> = known.take(READINGS_MAX).collect();
    (!said.is_empty()).then(|| said.join(", "))
}
