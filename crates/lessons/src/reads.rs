//! Reads: a derivation asks by address for values that the view has no room for, and they are
//! appended.
//!
//! The model writes a query (`012?`), its runner appends the value (`=+0412 `), and the model
//! continues. A value is what stands at the address: like a view, a read must not compute.

use prime_bench::tasks::Machine;

use crate::lesson;

/// Ends a query. Derivations that read, and their actions, have it nowhere else.
pub const QUERY_END: char = '?';

/// A query for an address that the state does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchAddress(pub String);

impl std::fmt::Display for NoSuchAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the derivation asks for `{}`, which this state does not have", self.0)
    }
}

impl std::error::Error for NoSuchAddress {}

/// A part of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'c> {
    /// Text of the model, up to the end of a query or of the completion.
    Written(&'c str),
    /// A value, appended by the runner of the model.
    Appended(&'c str),
}

/// A query with its value, as a derivation has it: `012?=+0412 `.
pub(crate) fn looked_up(address: &str, value: &str) -> String {
    format!("{address}{QUERY_END}{}", appended(value))
}

/// The space ends the value, so that no word of a vocabulary reaches from it into what the model
/// writes.
fn appended(value: &str) -> String {
    format!("={value} ")
}

/// Most values that a derivation of the task looks up; 0 if its lesson has no reads.
pub fn reads_max(slug: &str) -> usize {
    lesson(slug).map_or(0, |lesson| lesson.reads_max)
}

/// The address that a text asks for at its end: its last word.
pub fn query(text: &str) -> Option<&str> {
    text.strip_suffix(QUERY_END)?.rsplit([' ', '\n']).next()
}

/// The value that is appended to a query for this address.
///
/// # Errors
/// If the state has no such address, or the task's lesson no reads.
pub fn read(machine: &dyn Machine, address: &str) -> Result<String, NoSuchAddress> {
    let lesson = lesson(machine.spec().slug).filter(|lesson| lesson.reads_max > 0);
    let value = lesson.and_then(|lesson| (lesson.read)(machine, address));
    value.map(|value| appended(&value)).ok_or_else(|| NoSuchAddress(address.to_owned()))
}

/// The parts of a completion, in turn: the first and the last one are written.
pub fn segments<'c>(slug: &str, completion: &'c str) -> Vec<Segment<'c>> {
    let mut segments = Vec::new();
    let mut rest = completion;

    if reads_max(slug) > 0 {
        // A value ends with its space, unless the completion was cut off inside it.
        while let Some(end) = rest.find(QUERY_END) {
            let (written, after) = rest.split_at(end + QUERY_END.len_utf8());
            let (value, after) =
                after.split_at(after.find(' ').map_or(after.len(), |space| space + 1));
            segments.extend([Segment::Written(written), Segment::Appended(value)]);
            rest = after;
        }
    }

    segments.push(Segment::Written(rest));
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};

    #[test]
    fn a_completion_is_cut_at_its_queries() {
        let completion =
            format!("{}less {}\ninsert 5 4", looked_up("012", "+0412"), looked_up("4", "-"));
        assert_eq!(completion, "012?=+0412 less 4?=- \ninsert 5 4");

        let cut = segments("introsort", &completion);
        let (written, appended) = (Segment::Written, Segment::Appended);
        assert_eq!(
            cut,
            [
                written("012?"),
                appended("=+0412 "),
                written("less 4?"),
                appended("=- "),
                written("\ninsert 5 4")
            ]
        );

        assert_eq!(
            segments("bubble-sort", "what? 1 "),
            [written("what? 1 ")],
            "without reads nothing is cut"
        );

        assert_eq!(segments("introsort", "1?"), [written("1?"), appended(""), written("")]);
    }

    #[test]
    fn a_query_is_the_last_word() {
        assert_eq!(query("less 012?"), Some("012"));
        assert_eq!(query("insert\n012?"), Some("012"));
        assert_eq!(query("?"), Some(""));
        assert_eq!(query("less 012? "), None);
    }

    #[test]
    fn an_address_that_does_not_exist_is_named() {
        let start =
            |slug: &str| tasks::find(slug).expect("a task").generate(Difficulty::Easy, 1).start();

        let machine = start("introsort");

        assert!(
            read(machine.as_ref(), "003")
                .is_ok_and(|value| value.starts_with('=') && value.ends_with(' '))
        );

        for address in ["999", "", "-1", "18446744073709551616", "x", "é"] {
            let error = read(machine.as_ref(), address).expect_err("no such address");
            assert!(error.to_string().contains(&format!("`{address}`")), "{error}");
        }

        assert!(read(start("bubble-sort").as_ref(), "003").is_err(), "a lesson without reads");
    }
}
