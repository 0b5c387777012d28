//! Changes that make a right step a wrong one.

use crate::tasks::{Machine, TaskRng};

/// Numbers from 0 to this one are tried in place of any number.
const NUMBER_SMALL: u32 = 3;

/// A change that may make a right step wrong.
#[derive(Clone, Copy)]
pub(super) enum Mutation {
    /// The next step: one is skipped.
    Early,
    /// The same step again, after it was committed.
    Repeated,
    /// One number differs.
    Changed,
    /// One word differs, is missing or is swapped with its neighbour; or one letter differs.
    Reworded,
    /// The documented example of some action.
    OtherAction,
    /// Another choice, where the task is a search.
    OtherChoice,
}

/// Every variant of the line with one number replaced by a near or small one.
fn changed(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let is_digit = |c: char| c.is_ascii_digit();
    let mut end = 0;

    while let Some(start) = line[end..].find(is_digit).map(|at| end + at) {
        end = line[start..].find(|c| !is_digit(c)).map_or(line.len(), |length| start + length);

        // Larger numbers are neither sizes nor indices.
        let Ok(number) = line[start..end].parse::<u32>() else { continue };

        let near = [number.saturating_sub(1), number.saturating_add(1)];
        for other in (0..=NUMBER_SMALL).chain(near).filter(|other| *other != number) {
            let changed = format!("{}{other}{}", &line[..start], &line[end..]);
            if !lines.contains(&changed) {
                lines.push(changed);
            }
        }
    }
    lines
}

/// The alternatives at one place of a task's forms, as `=` and `!` of `<=|!>`.
fn alternatives<'f>(forms: &[&'f str]) -> Vec<Vec<&'f str>> {
    let fields = forms
        .iter()
        .flat_map(|form| form.split('<').skip(1))
        .filter_map(|rest| rest.split('>').next());

    let words = fields.filter(|field| !field.starts_with('[') && field.contains('|'));
    words.map(|field| field.split('|').collect()).collect()
}

/// Every variant of the line with one word replaced, removed or swapped with its neighbour, or one
/// letter replaced.
fn reworded(line: &str, forms: &[&str]) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();

    let with = |at: usize, word: &str| {
        let mut words = words.clone();
        words[at] = word;
        words.join(" ")
    };

    let groups = alternatives(forms);
    let mut lines = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let others = groups
            .iter()
            .filter(|group| group.contains(word))
            .flatten()
            .filter(|other| *other != word);
        lines.extend(others.map(|other| with(at, other)));

        lines.push(with(at, "-"));

        let mut fewer = words.clone();
        fewer.remove(at);
        lines.push(fewer.join(" "));

        if at > 0 {
            let mut exchanged = words.clone();
            exchanged.swap(at - 1, at);
            lines.push(exchanged.join(" "));
        }
    }

    let letters = line.char_indices().filter(|(_, c)| c.is_ascii_alphabetic());
    // ASCII letters are one byte each, so `at + 1` is a character boundary.
    lines.extend(letters.map(|(at, c)| {
        // The next letter, wrapping around.
        let next = match c {
            'z' => 'a',
            'Z' => 'A',
            c => char::from_u32(u32::from(c) + 1).unwrap_or('a'),
        };
        format!("{}{next}{}", &line[..at], &line[at + 1..])
    }));

    lines.retain(|other| other != line && !other.is_empty());
    lines
}

impl Mutation {
    pub const ALL: [Self; 6] = [
        Self::Early,
        Self::Repeated,
        Self::Changed,
        Self::Reworded,
        Self::OtherAction,
        Self::OtherChoice,
    ];

    /// The state at which the mutated lines are proposed, and the lines.
    pub fn of(self, machine: &dyn Machine, right: &str) -> (Box<dyn Machine>, Vec<String>) {
        let mut after = machine.fork();
        let lines = match self {
            Self::Early => {
                after.follow_reference();
                return (machine.fork(), after.reference().into_iter().collect());
            }
            Self::Repeated => {
                after.follow_reference();
                vec![right.to_owned()]
            }
            Self::Changed => changed(right),
            Self::Reworded => reworded(right, machine.spec().actions),
            Self::OtherAction => {
                machine.spec().page.actions.iter().map(|action| action.example.to_owned()).collect()
            }
            Self::OtherChoice => machine.choices().unwrap_or_default(),
        };

        (after, lines)
    }
}

/// Lines that cannot be mistaken for the right one.
pub(super) fn garbage(right: &str, rng: &mut TaskRng) -> Vec<String> {
    let mut lines = vec![
        "no action".to_owned(),
        format!("The next step is {right}."),
        format!("x{right}"),
        format!("{right} {right}"),
    ];
    lines.rotate_left(rng.index(4));
    lines
}
