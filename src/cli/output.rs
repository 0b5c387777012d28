//! Writing to standard output and standard error. Every command writes through here: a full device
//! is an error, a closed pipe is not, a broken standard error never ends the process, and no text
//! that a model, server or program wrote reaches a terminal with control characters in it.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, IsTerminal as _, StderrLock, StdoutLock, Write as _};

use clap::ValueEnum;
use console::{Term, measure_text_width};
use prime_printable::Printable;
use serde::Serialize;

pub use prime_report::{count, plural};

/// How a command prints its result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output cannot be written")]
pub struct OutputError(#[source] io::Error);

/// Exit code for [`OutputError`], as `EX_IOERR` of sysexits.h.
pub const OUTPUT_FAILED: u8 = 74;

/// Turns a failed write to standard output into an error. A reader that closed the pipe has seen
/// enough: no error.
pub fn written(result: io::Result<()>) -> Result<(), OutputError> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputError(error)),
        _ => Ok(()),
    }
}

/// Standard output, for text in several parts.
#[expect(clippy::disallowed_methods, reason = "everything else writes through this")]
pub fn stdout() -> Printable<StdoutLock<'static>> {
    Printable::new(io::stdout().lock())
}

#[expect(clippy::disallowed_methods, reason = "everything else writes through this")]
fn stderr() -> Printable<StderrLock<'static>> {
    Printable::new(io::stderr().lock())
}

/// True if standard output is a terminal.
#[expect(clippy::disallowed_methods, reason = "asks, and writes nothing")]
pub fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}

/// True if standard error is a terminal.
#[expect(clippy::disallowed_methods, reason = "asks, and writes nothing")]
pub fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes to standard output.
pub fn print(text: impl Display) -> Result<(), OutputError> {
    let mut out = stdout();
    written(write!(out, "{text}").and_then(|()| out.flush()))
}

/// Writes a value to standard output as JSON for programs.
pub fn print_json(value: &impl Serialize) -> Result<(), OutputError> {
    let text = serde_json::to_string_pretty(value).expect("invariant: results serialise");
    print(text + "\n")
}

/// Writes a line to standard error.
macro_rules! note {
    ($($argument:tt)*) => { $crate::cli::output::write_note(format_args!($($argument)*)) };
}
pub(super) use note;

/// The function of `note!`. `eprintln!` would panic where standard error is closed or full.
pub fn write_note(line: fmt::Arguments<'_>) {
    // There is no other place to report this failure.
    drop(writeln!(stderr(), "{line}"));
}

/// Columns of the terminal on standard output; `None` if it is not a terminal.
pub fn columns() -> Option<usize> {
    if !is_stdout_terminal() {
        return None;
    }
    Term::stdout().size_checked().map(|(_, columns)| columns.into())
}

/// Columns of the terminal on standard error; `None` if it is not a terminal.
pub fn stderr_columns() -> Option<usize> {
    if !is_stderr_terminal() {
        return None;
    }
    Term::stderr().size_checked().map(|(_, columns)| columns.into())
}

/// Text whose lines end within `columns` at a blank, where they can; what follows is indented as
/// the text of the line's second column is. `None` sets no limit.
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut wrapped = String::new();
    for line in text.lines() {
        wrap_line(line, columns, INDENT, &mut wrapped);
        wrapped.push('\n');
    }
    wrapped
}

/// A paragraph whose lines end within `columns` at a blank, where they can.
pub fn paragraph(text: &str, columns: usize) -> String {
    let mut filled = String::new();
    wrap_line(text, columns, 0, &mut filled);
    filled.push('\n');
    filled
}

/// Columns by which wrapped lines are indented: the first column of results, and two blanks.
const INDENT: usize = 12;

fn wrap_line(line: &str, columns: usize, indent: usize, into: &mut String) {
    let mut width = 0;
    // The blanks before the first word are part of it: they are the line's own indentation.
    let body = line.len() - line.trim_start().len();
    for (place, word) in line[body..].split(' ').enumerate() {
        let own = measure_text_width(word);
        if place == 0 {
            into.push_str(&line[..body]);
            width = body;
        } else if width + 1 + own > columns && width > indent {
            into.push('\n');
            into.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else {
            into.push(' ');
            width += 1;
        }
        into.push_str(word);
        width += own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_words() {
        let text = "   verdict  verified by all of the rules\n      ended  agreed\n";
        let expected = "   verdict  verified by\n            all of the\n            rules\n\
                        \x20     ended  agreed\n";
        assert_eq!(wrapped(text, Some(24)), expected);
        assert_eq!(wrapped(text, None), text);
        assert_eq!(paragraph("one two three", 8), "one two\nthree\n");
    }

    #[test]
    fn a_word_wider_than_the_terminal_is_left_whole() {
        assert_eq!(wrapped("    answer  0123456789\n", Some(14)), "    answer  0123456789\n");
    }

    #[test]
    fn only_a_closed_pipe_is_no_error() {
        assert!(written(Err(ErrorKind::BrokenPipe.into())).is_ok());
        assert!(written(Err(ErrorKind::StorageFull.into())).is_err());
    }
}
