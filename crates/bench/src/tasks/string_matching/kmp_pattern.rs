//! KMP Pattern: compute a pattern's failure array, then find all its places in a text, as Knuth,
//! Morris and Pratt do.
//!
//! A step is one comparison of two letters; its line names both places and the verdict.

use std::fmt;

use crate::tasks::pages::kmp_pattern as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `kmp-pattern`.
pub struct KmpPattern;

const TEXT_MAX: usize = 100_000;
const PATTERN_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The letters to search in.
    pub text: String,
    /// The letters to find, at least two.
    pub pattern: String,
}

impl Instance {
    /// The string whose letters are compared with the pattern's.
    pub fn subject(&self, phase: Phase) -> &[u8] {
        if phase == Phase::Pattern { self.pattern.as_bytes() } else { self.text.as_bytes() }
    }
}

/// What is computed: the failure function of the pattern, or the matches in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The failure function.
    #[serde(rename = "p")]
    Pattern,
    /// The matches.
    #[serde(rename = "t")]
    Text,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What is being computed.
    pub phase: Phase,
    /// Place to compare next, in the pattern or in the text, from 0.
    pub i: usize,
    /// Place of the pattern to compare with it, which is the length matched so far.
    pub k: usize,
    /// Failure function so far: length of the longest proper border of each prefix.
    pub failure: Vec<usize>,
    /// Start of each match found, ascending; matches may overlap.
    pub matches: Vec<usize>,
    /// Comparisons within the pattern so far.
    pub pattern_comparisons: u64,
    /// Comparisons of text and pattern so far.
    pub text_comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// Place i of the phase's string compared with place k of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    phase: Phase,
    i: usize,
    k: usize,
    equal: bool,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["p <nat> <nat> <=|!>", "t <nat> <nat> <=|!>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let phase = if form == 0 { Phase::Pattern } else { Phase::Text };
        Some(Action { phase, i: fields.nat(0)?, k: fields.nat(1)?, equal: fields.text(2)? == "=" })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = if self.phase == Phase::Pattern { 'p' } else { 't' };
        write!(f, "{phase} {} {} {}", self.i, self.k, if self.equal { '=' } else { '!' })
    }
}

fn uniform(alphabet: &[u8], length: usize, rng: &mut TaskRng) -> Vec<u8> {
    (0..length).map(|_| rng.one_of(alphabet)).collect()
}

/// One letter at a uniform place is drawn again.
fn redraw_letter(letters: &mut [u8], alphabet: &[u8], rng: &mut TaskRng) {
    let place = rng.index(letters.len());
    letters[place] = rng.one_of(alphabet);
}

fn drawn(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
    let n = page::size::TEXT.draw(difficulty, rng);
    let m = page::size::PATTERN.draw(difficulty, rng);
    let planted = page::size::PLANTED.draw(difficulty, rng);
    let alphabet: &[u8] = if rng.chance(1, 2) { b"ab" } else { b"abc" };

    // Repetitions of a short unit, so that the pattern has borders.
    let unit = uniform(alphabet, m.div_ceil(3), rng);
    let mut pattern: Vec<u8> = unit.into_iter().cycle().take(m).collect();
    if rng.chance(1, 2) {
        redraw_letter(&mut pattern, alphabet, rng);
    }

    let mut text = uniform(alphabet, n, rng);
    for plant in 0..2 * planted {
        let mut planting = pattern.clone();
        // Every second planting is likely to be a near miss.
        if plant % 2 == 1 {
            redraw_letter(&mut planting, alphabet, rng);
        }

        let place = rng.index(n - m + 1);
        text[place..place + m].copy_from_slice(&planting);
    }

    let string = |letters: Vec<u8>| letters.into_iter().map(char::from).collect();
    Instance { text: string(text), pattern: string(pattern) }
}

impl Task for KmpPattern {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let instance = drawn(difficulty, rng);
            // A border exists exactly if the first letter occurs again.
            let (first, others) = instance.pattern.split_at(1);
            if instance.text.contains(&instance.pattern) && others.contains(first) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let letters = |text: &str, min, max| {
            text.bytes().all(|c| c.is_ascii_graphic()) && (min..=max).contains(&text.len())
        };
        let text = letters(&instance.text, 1, TEXT_MAX);
        InvalidInput::unless(text, "text", format!("must be 1 to {TEXT_MAX} ASCII letters"))?;

        let pattern = letters(&instance.pattern, 2, PATTERN_MAX);
        InvalidInput::unless(
            pattern,
            "pattern",
            format!("must be 2 to {PATTERN_MAX} ASCII letters"),
        )
    }

    fn start(_: &Instance) -> State {
        State {
            phase: Phase::Pattern,
            i: 1,
            k: 0,
            failure: vec![0],
            matches: Vec::new(),
            pattern_comparisons: 0,
            text_comparisons: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let (m, i, k) = (instance.pattern.len(), state.i, state.k);
        let compares = match state.phase {
            Phase::Pattern => (1..m).contains(&i) && k < i,
            Phase::Text => i <= instance.text.len() && k <= i && k < m,
        };
        InvalidInput::unless(
            compares,
            "i",
            "and `k` must be places of the text and the pattern, `k` no further than `i`",
        )?;

        limits::length(
            "failure",
            state.failure.len(),
            if state.phase == Phase::Pattern { i } else { m },
        )?;

        let failure = state.failure.iter().enumerate().all(|(place, length)| *length <= place);
        InvalidInput::unless(failure, "failure", "must have no entry greater than its place")?;

        limits::below("matches", state.matches.iter().copied(), instance.text.len())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if (action.phase, action.i, action.k) != (state.phase, state.i, state.k) {
            return Err(Illegal("another comparison is due"));
        }

        if state.i >= instance.subject(state.phase).len() {
            return Err(Illegal("the text has been searched"));
        }

        let m = instance.pattern.len();
        match (state.phase, action.equal) {
            (Phase::Pattern, true) => {
                state.k += 1;
                state.failure.push(state.k);
                state.i += 1;
            }
            (Phase::Text, true) => {
                state.k += 1;
                if state.k == m {
                    state.matches.push(state.i + 1 - m);
                    // Occurrences may overlap.
                    state.k = state.failure[m - 1];
                }
                state.i += 1;
            }

            // The place in the text stays: only the pattern is shifted.
            (_, false) if state.k > 0 => state.k = state.failure[state.k - 1],
            (Phase::Pattern, false) => {
                state.failure.push(0);
                state.i += 1;
            }
            (Phase::Text, false) => state.i += 1,
        }

        if state.phase == Phase::Pattern {
            state.pattern_comparisons += 1;
            if state.i == m {
                (state.phase, state.i, state.k) = (Phase::Text, 0, 0);
            }
        } else {
            state.text_comparisons += 1;
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let State { phase, i, k, .. } = *state;
        let letter = instance.subject(phase).get(i)?;
        Some(Action { phase, i, k, equal: *letter == instance.pattern.as_bytes()[k] })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let pattern = instance.pattern.as_bytes();
        let subject = instance.subject(action.phase);

        found.require(
            page::TRUE_COMPARISON,
            (subject[action.i] == pattern[action.k]) == action.equal,
        );
        found.require(page::PREFIX, subject[..action.i].ends_with(&pattern[..action.k]));

        if before.phase == after.phase {
            let shift = |state: &State| state.i.checked_sub(state.k);
            found.require(page::FORWARD, after.i >= before.i && shift(after) >= shift(before));
        }

        let grows = |i: usize| {
            after.failure[i] <= i && (i == 0 || after.failure[i] <= after.failure[i - 1] + 1)
        };
        found.require(page::FAILURE_GROWTH, (0..after.failure.len()).all(grows));

        if Self::ended(instance, after) {
            let real = after
                .matches
                .iter()
                .all(|start| instance.text[*start..].starts_with(&instance.pattern));
            let decided = after.i == instance.text.len() && after.failure.len() == pattern.len();
            found.require(page::END, decided && real);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.phase == Phase::Text && state.i >= instance.text.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each comparison raises i, or lowers k, which only grows by one with an i.
        2 * (instance.pattern.len() as u64 - 1 + instance.text.len() as u64)
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "failure": state.failure,
            "matches": state.matches,
            "pattern_comparisons": state.pattern_comparisons,
            "text_comparisons": state.text_comparisons,
        })
    }
}
