//! Lines that an adversary may try in a state: everything in reach of the task's forms, with the
//! words and numbers that occur around the state.

use std::collections::VecDeque;

use crate::tasks::pattern::{Part, parts};
use crate::tasks::{Machine, TaskRng};

/// Lines of the trace that are remembered, and lines of the algorithm that are looked up ahead.
const NEAR: usize = 16;
/// Words of the state that are taken into account.
const WORDS_MAX: usize = 400;
/// Numbers below this are tried in every state.
const SMALL: u64 = 4;

/// The source of candidates: the lines around a state, and the words in them and in the state.
#[derive(Default)]
pub struct Source {
    recent: VecDeque<String>,
    ahead: Vec<String>,
    words: Vec<String>,
    numbers: Vec<i64>,
    groups: Vec<String>,
}

/// The runs of letters, digits and underscores in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The groups in round brackets in a text, brackets included, at most [`NEAR`] of them.
fn groups(text: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => open.push(at),
            ')' => {
                if let Some(start) = open.pop().filter(|_| found.len() < NEAR) {
                    found.push(text[start..=at].to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

impl Source {
    /// Records a line of the trace.
    pub fn push(&mut self, line: &str) {
        if self.recent.len() == NEAR {
            self.recent.pop_front();
        }
        self.recent.push_back(line.to_owned());
    }

    /// Reads the algorithm's next lines from a state, and the words in it.
    pub fn look(&mut self, machine: &dyn Machine) {
        self.ahead.clear();
        let mut scout = machine.fork();
        while self.ahead.len() < NEAR
            && let Some(line) = scout.reference()
        {
            self.ahead.push(line);
            if !scout.follow_reference() {
                break;
            }
        }

        let state = machine.state().to_string();
        let lines = self.recent.iter().chain(&self.ahead);
        let text: String = lines.flat_map(|line| [line.as_str(), "\n"]).collect();

        self.words = words(&text).chain(words(&state).take(WORDS_MAX)).map(str::to_owned).collect();
        self.words.sort_unstable();
        self.words.dedup();
        self.numbers = self.words.iter().filter_map(|word| word.parse().ok()).collect();
        self.groups = groups(&text);
        self.groups.extend(groups(&state));
    }

    /// A number near those around the state.
    fn number(&self, rng: &mut TaskRng) -> i64 {
        let near = !self.numbers.is_empty() && rng.chance(3, 4);
        let number = if near {
            rng.one_of(&self.numbers)
        } else {
            i64::try_from(rng.below(4 * SMALL)).unwrap_or(0)
        };
        // Off by one is the likeliest slip that a check overlooks.
        number.saturating_add(rng.one_of(&[0, 0, 0, 1, -1]))
    }

    /// A value for a field of the form language ([`crate::tasks::pattern`]).
    fn value(&self, field: &str, rng: &mut TaskRng) -> String {
        let natural = |rng: &mut TaskRng| self.number(rng).unsigned_abs().to_string();
        let signed = |rng: &mut TaskRng| match self.number(rng) {
            0 => "0".to_owned(),
            number if rng.chance(1, 3) => number.saturating_neg().to_string(),
            number => number.to_string(),
        };
        match field {
            "nat?" | "nats?" if rng.chance(1, 4) => "-".to_owned(),
            "ratio" if rng.chance(1, 3) => format!("{}/{}", natural(rng), 2 + rng.below(5)),
            "rat" if rng.chance(1, 3) => format!("{}/{}", signed(rng), 2 + rng.below(5)),
            "nat" | "nat?" | "big" | "ratio" => natural(rng),
            "int" | "bigint" | "rat" => signed(rng),
            "digit" => rng.below(10).to_string(),
            "nats" | "nats?" | "ints" => {
                let count = 1 + rng.below(4);
                let one = |rng: &mut TaskRng| {
                    if field == "ints" { signed(rng) } else { natural(rng) }
                };
                (0..count).map(|_| one(rng)).collect::<Vec<_>>().join(" ")
            }
            class if class.starts_with('[') => self.text(class, rng),
            choice => rng.one_of(&choice.split('|').collect::<Vec<_>>()).to_owned(),
        }
    }

    /// A word or group around the state, or random characters of the class.
    fn text(&self, class: &str, rng: &mut TaskRng) -> String {
        if !self.groups.is_empty() && rng.chance(1, 3) {
            return self.groups[rng.index(self.groups.len())].clone();
        }
        if !self.words.is_empty() && rng.chance(2, 3) {
            return self.words[rng.index(self.words.len())].clone();
        }
        let end = class.find(']').unwrap_or(class.len());
        let mut inside: Vec<char> = Vec::new();
        let mut rest = class[1..end].chars().peekable();
        while let Some(first) = rest.next() {
            if rest.peek() == Some(&'-') {
                rest.next();
                match rest.next() {
                    Some(last) => inside.extend(first..=last),
                    None => inside.extend([first, '-']),
                }
            } else {
                inside.push(first);
            }
        }
        (0..=rng.below(3)).map(|_| rng.one_of(&inside)).collect()
    }

    /// A random line of one of the forms.
    fn of_form(&self, forms: &[&'static str], rng: &mut TaskRng) -> String {
        let mut line = String::new();
        for part in parts(rng.one_of(forms)) {
            match part {
                Part::Literal(literal) => line += literal,
                Part::Field(field) => line += &self.value(field, rng),
            }
        }
        line
    }

    /// The line with one of its words or groups replaced.
    fn changed(&self, line: &str, rng: &mut TaskRng) -> String {
        let inside = groups(line);
        if !inside.is_empty() && rng.chance(1, 4) {
            let group = &inside[rng.index(inside.len())];
            let other = self.text("[a-z0-9]", rng);
            return line.replacen(group, &other, 1);
        }

        let found: Vec<&str> = words(line).collect();
        if found.is_empty() {
            return line.to_owned();
        }
        let word = found[rng.index(found.len())];
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        let other = match word.parse::<i64>() {
            Ok(number) if rng.chance(1, 3) => {
                number.saturating_add(rng.one_of(&[1, -1])).to_string()
            }
            // A later line may make up for a missing number.
            Ok(number) if rng.chance(1, 6) => {
                let by = self.number(rng);
                rng.one_of(&[number.saturating_add(by), number.saturating_sub(by)]).to_string()
            }
            // A word of the algorithm, or of the state.
            Err(_) if !self.words.is_empty() => self.words[rng.index(self.words.len())].clone(),
            _ => self.number(rng).to_string(),
        };
        format!("{}{other}{}", &line[..start], &line[start + word.len()..])
    }

    /// The line with a word too few or too many, or with one of its characters removed, doubled or
    /// replaced.
    fn edited(&self, line: &str, rng: &mut TaskRng) -> String {
        if rng.chance(1, 2) {
            let mut words: Vec<&str> = line.split(' ').collect();
            let place = rng.index(words.len());
            match rng.below(3) {
                0 => drop(words.remove(place)),
                1 => words.insert(place, words[rng.index(words.len())]),
                _ => words.swap(place, 0),
            }
            return words.join(" ");
        }

        let mut letters: Vec<char> = line.chars().collect();
        if letters.is_empty() {
            return self.text("[a-z0-9]", rng);
        }
        let place = rng.index(letters.len());
        let other = letters[rng.index(letters.len())];
        match rng.below(4) {
            0 => drop(letters.remove(place)),
            1 => letters.insert(place, other),
            2 => letters.insert(place, '-'),
            _ => letters[place] = other,
        }
        letters.into_iter().collect()
    }

    /// A line that the adversary tries.
    pub fn candidate(&self, machine: &dyn Machine, rng: &mut TaskRng) -> String {
        let forms = machine.spec().actions;
        match rng.below(12) {
            0 if !self.recent.is_empty() => self.recent[rng.index(self.recent.len())].clone(),
            1 | 2 if !self.ahead.is_empty() => self.ahead[rng.index(self.ahead.len())].clone(),
            3 => match machine.choices() {
                Some(choices) if !choices.is_empty() => choices[rng.index(choices.len())].clone(),
                _ => self.of_form(forms, rng),
            },
            4..=7 if !self.ahead.is_empty() => {
                let at = if rng.chance(2, 3) { 0 } else { rng.index(self.ahead.len()) };
                let mut line = if rng.chance(1, 4) {
                    self.edited(&self.ahead[at], rng)
                } else {
                    self.changed(&self.ahead[at], rng)
                };
                while rng.chance(1, 3) {
                    line = self.changed(&line, rng);
                }
                line
            }
            _ => self.of_form(forms, rng),
        }
    }
}
