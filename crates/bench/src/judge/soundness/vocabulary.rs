//! The lines over the numbers, words, fractions and lists that occur in an input and in its
//! reference trace.

use std::collections::BTreeSet;

use crate::tasks::Problem;
use crate::tasks::pattern::{Part, parts};

/// The most lines that are tried in a state. Where there are more, only those are tried that differ
/// from a line of the reference trace in one place.
const LINES_MAX: usize = 4_000;
/// The most lines that differ in one place from one of the reference trace.
const NEAR_MAX: usize = 1_000;
/// The most values of a list or a fraction.
const VALUES_MAX: usize = 400;
/// The longest list that is taken from the trace, and the bound of those that are taken anyway.
const LIST_MAX: usize = 6;
const SMALL_SET: usize = 4;

/// The parts that lines are made of.
struct Vocabulary {
    numbers: Vec<i64>,
    words: Vec<String>,
    fractions: Vec<String>,
    lists: Vec<String>,
}

/// Numerator and denominator of a fraction as a line writes it.
fn fraction(token: &str) -> Option<(i64, i64)> {
    let (above, below) = token.split_once('/')?;
    Some((above.parse().ok()?, below.parse().ok()?))
}

/// The runs of numbers between single spaces in a line, cut to every place and length, and with one
/// number dropped or moved by one.
fn lists_of(line: &str, found: &mut BTreeSet<String>) {
    let tokens: Vec<Option<i64>> = line.split(' ').map(|token| token.parse().ok()).collect();
    for from in 0..tokens.len() {
        let run: Vec<i64> =
            tokens[from..].iter().take(LIST_MAX).map_while(|number| *number).collect();
        for to in 1..=run.len() {
            let list = &run[..to];
            let mut add = |list: &[i64]| {
                if !list.is_empty() && found.len() < VALUES_MAX {
                    let texts: Vec<_> = list.iter().map(ToString::to_string).collect();
                    found.insert(texts.join(" "));
                }
            };
            add(list);
            for place in 0..to {
                let mut other = list.to_vec();
                other.remove(place);
                add(&other);
                for by in [1, -1] {
                    let mut other = list.to_vec();
                    other[place] = other[place].saturating_add(by);
                    add(&other);
                }
            }
        }
    }
}

impl Vocabulary {
    fn of(input: &str, trace: &[String]) -> Self {
        let text = format!("{input}\n{}", trace.join("\n"));
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let split = |with: &'static str| {
            let tokens = text.split(move |c: char| !(inside(c) || with.contains(c)));
            tokens.filter(|token| !token.is_empty())
        };

        let words: BTreeSet<String> = split("").map(str::to_owned).collect();
        let near = |number: i64| [number, number.saturating_add(1), number.saturating_sub(1)];
        let numbers: BTreeSet<i64> = words
            .iter()
            .filter_map(|word| word.parse::<i64>().ok())
            .flat_map(near)
            .chain(-1..=2)
            .collect();

        let fractions: BTreeSet<String> = split("/")
            .filter_map(fraction)
            .flat_map(|(above, below)| {
                let beside = near(above).map(|other| (other, below));
                let others = [(above.saturating_neg(), below), (above, below.saturating_add(1))];
                beside.into_iter().chain(others).map(|(above, below)| format!("{above}/{below}"))
            })
            .take(VALUES_MAX)
            .collect();

        let mut lists = BTreeSet::new();
        // Sets of a few small numbers: of states, say.
        for set in 1..1_usize << SMALL_SET {
            let members = (0..SMALL_SET).filter(|member| (set >> member) & 1 == 1);
            lists.insert(members.map(|member| member.to_string()).collect::<Vec<_>>().join(" "));
        }
        trace.iter().for_each(|line| lists_of(line, &mut lists));

        Self {
            numbers: numbers.into_iter().collect(),
            words: words.into_iter().collect(),
            fractions: fractions.into_iter().collect(),
            lists: lists.into_iter().collect(),
        }
    }

    /// The values of a field of the form language ([`crate::tasks::pattern`]).
    fn values(&self, field: &str) -> Vec<String> {
        let naturals = || self.numbers.iter().filter(|n| **n >= 0).map(ToString::to_string);
        let integers = || {
            let opposite = self.numbers.iter().map(|number| number.saturating_neg());
            let all: BTreeSet<i64> = self.numbers.iter().copied().chain(opposite).collect();
            all.into_iter().map(|number| number.to_string())
        };
        let optional = || std::iter::once("-".to_owned());
        let lists = |signed: bool| {
            self.lists.iter().filter(move |list| signed || !list.contains('-')).cloned()
        };
        match field {
            "nat" | "big" => naturals().collect(),
            "nat?" => optional().chain(naturals()).collect(),
            "int" | "bigint" => integers().collect(),
            "digit" => (0..10).map(|digit: u8| digit.to_string()).collect(),
            "rat" => integers().chain(self.fractions.iter().cloned()).collect(),
            "ratio" => {
                let fractions = self.fractions.iter().filter(|text| !text.starts_with('-'));
                naturals().chain(fractions.cloned()).collect()
            }
            "nats" => lists(false).collect(),
            "nats?" => optional().chain(lists(false)).collect(),
            "ints" => lists(true).collect(),
            class if class.starts_with('[') => self.words.clone(),
            choice => choice.split('|').map(str::to_owned).collect(),
        }
    }

    /// All lines of these forms; `None` if there are too many.
    fn all_lines(&self, forms: &[&'static str]) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for form in forms {
            let mut begun = vec![String::new()];
            for part in parts(form) {
                let ends = match part {
                    Part::Literal(literal) => vec![literal.to_owned()],
                    Part::Field(field) => self.values(field),
                };
                if begun.len().saturating_mul(ends.len()) > LINES_MAX {
                    return None;
                }
                begun = begun
                    .iter()
                    .flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")))
                    .collect();
            }
            all.extend(begun);
        }
        (all.len() <= LINES_MAX).then_some(all)
    }

    /// The lines of the trace, and those that differ from one of them in one word: another number
    /// or word, one too few, one too many.
    fn near_lines(&self, trace: &[String]) -> Vec<String> {
        let mut near: BTreeSet<String> = BTreeSet::new();
        for line in trace {
            let words: Vec<&str> = line.split(' ').collect();
            let mut add = |words: &[&str]| {
                near.insert(words.join(" "));
            };

            for place in 0..words.len() {
                let mut fewer = words.clone();
                fewer.remove(place);
                add(&fewer);
                let mut more = words.clone();
                more.insert(place, words[place]);
                add(&more);

                let is_number = words[place].parse::<i64>().is_ok();
                let numbers: Vec<String> = if is_number || fraction(words[place]).is_some() {
                    self.numbers.iter().map(ToString::to_string).collect()
                } else {
                    // Words that stand in this place of other lines of this length.
                    let others = trace.iter().map(|line| line.split(' ').collect::<Vec<_>>());
                    let others = others.filter(|other| other.len() == words.len());
                    others.map(|other| other[place].to_owned()).collect()
                };
                for other in numbers.iter().chain(&self.fractions).take(VALUES_MAX) {
                    let mut changed = words.clone();
                    changed[place] = other;
                    add(&changed);
                }
            }
        }

        // If there are too many, some from everywhere.
        let stride = near.len().div_ceil(NEAR_MAX).max(1);
        trace.iter().cloned().chain(near.into_iter().step_by(stride)).collect()
    }
}

/// The lines to try in every state of a problem, and true if these are all lines over the
/// vocabulary of its input and its trace.
pub(super) fn lines(problem: &dyn Problem) -> (Vec<String>, bool) {
    let mut trace = Vec::new();
    let mut machine = problem.start();
    let mut line = String::new();
    while machine.advance(&mut line) {
        trace.push(line.clone());
    }

    let vocabulary = Vocabulary::of(&problem.input().to_string(), &trace);
    let all = vocabulary.all_lines(problem.spec().actions);
    let is_all = all.is_some();
    let mut lines = all.unwrap_or_else(|| vocabulary.near_lines(&trace));
    lines.extend(trace);
    lines.sort_unstable();
    lines.dedup();
    (lines, is_all)
}
