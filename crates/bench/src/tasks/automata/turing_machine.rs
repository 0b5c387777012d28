//! Turing Machine: sweep over a word, lowering its digits, until a sweep changes nothing.
//!
//! A step is one application of the transition table; its line names the symbol written, the move
//! and the next state.

use std::fmt;

use crate::tasks::pages::turing_machine as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `turing-machine`.
pub struct TuringMachine;

const STATES_MAX: usize = 1_000;
const LENGTH_MAX: usize = 1_000;
const SYMBOLS: &str = "_0123";
const BLANK: char = '_';
const ACCEPT: i64 = -1;
const REJECT: i64 = -2;

/// Where the head moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// One cell to the left.
    L,
    /// One cell to the right.
    R,
}

impl Direction {
    fn opposite(self) -> Self {
        if self == Self::L { Self::R } else { Self::L }
    }

    fn offset(self) -> i64 {
        if self == Self::L { -1 } else { 1 }
    }
}

/// Next state, symbol written, move of the head: an entry of the table, and what a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action(i64, char, Direction);

impl TaskAction for Action {
    const FORMS: &'static [&'static str] =
        &["<[_0-3]{1}> <L|R> <nat>", "<[_0-3]{1}> <L|R> <acc|rej>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let write = fields.text(0)?.chars().next()?;
        let direction = if fields.text(1)? == "L" { Direction::L } else { Direction::R };
        let next = match (form, fields.text(2)) {
            (0, _) => fields.nat(2)?,
            (_, Some("acc")) => ACCEPT,
            _ => REJECT,
        };
        Some(Action(next, write, direction))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(next, write, direction) = self;
        let direction = if *direction == Direction::L { 'L' } else { 'R' };
        match *next {
            ACCEPT => write!(f, "{write} {direction} acc"),
            REJECT => write!(f, "{write} {direction} rej"),
            next => write!(f, "{write} {direction} {next}"),
        }
    }
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of states, which are 0..states; the first is the start.
    pub states: usize,
    /// Symbols of the tape, the blank first, in the order of the columns of `delta`.
    pub symbols: String,
    /// What to do, by state and place of the symbol in `symbols`.
    pub delta: Vec<Vec<Action>>,
    /// Digits 0 to 3 in the cells from 0 on; the head starts on the first.
    pub word: String,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Current state; -1 after accepting, -2 after rejecting.
    pub q: i64,
    /// Cell of the head; negative to the left of the word.
    pub head: i64,
    /// The cells of the word; all others stay blank.
    pub tape: String,
    /// Number of steps that wrote another symbol than they read.
    pub changed: u64,
    /// Lowest cell that the head has been on.
    pub leftmost: i64,
    /// Highest cell that the head has been on.
    pub rightmost: i64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The place of the head in the word; `None` outside of it.
    pub fn place(&self) -> Option<usize> {
        usize::try_from(self.head).ok().filter(|place| *place < self.tape.len())
    }

    /// The symbol under the head; beyond the tape, a blank.
    pub fn symbol(&self) -> char {
        self.place().map_or(BLANK, |place| char::from(self.tape.as_bytes()[place]))
    }
}

impl Instance {
    /// The entry of the table for a state and the symbol under the head; `None` after halting.
    fn entry(&self, state: &State) -> Option<Action> {
        let row = self.delta.get(usize::try_from(state.q).ok()?)?;
        row.get(SYMBOLS.find(state.symbol())?).copied()
    }
}

/// The tape left and right of a cell.
fn elsewhere(tape: &str, cell: Option<usize>) -> (&str, &str) {
    match cell {
        Some(cell) => (tape.get(..cell).unwrap_or(""), tape.get(cell + 1..).unwrap_or("")),
        None => (tape, ""),
    }
}

fn digit_sum(digits: &str) -> u64 {
    digits.bytes().map(|c| u64::from(c.saturating_sub(b'0'))).sum()
}

fn drawn(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
    let states = page::size::STATES.draw(difficulty, rng);
    let length = page::size::LENGTH.draw(difficulty, rng);

    // A kind: direction of the sweep, and whether the sweep has lowered a digit. The first four
    // states have each kind once, so that a state of every kind exists.
    let mut kinds = vec![
        (Direction::R, false),
        (Direction::R, true),
        (Direction::L, false),
        (Direction::L, true),
    ];
    while kinds.len() < states {
        kinds.push(kinds[rng.index(4)]);
    }

    let one_with = |wanted: &dyn Fn((Direction, bool)) -> bool, rng: &mut TaskRng| {
        let fitting: Vec<i64> =
            (0..).zip(&kinds).filter(|(_, kind)| wanted(**kind)).map(|(q, _)| q).collect();
        rng.one_of(&fitting)
    };

    let row = |(direction, flag): (Direction, bool), rng: &mut TaskRng| {
        let next = if flag {
            one_with(&|kind| kind == (direction.opposite(), false), rng)
        } else {
            rng.one_of(&[ACCEPT, REJECT])
        };

        let mut row = vec![Action(next, BLANK, direction.opposite())];
        row.push(Action(one_with(&|kind| kind == (direction, flag), rng), '0', direction));
        for value in 1..=3 {
            let next = one_with(&|kind| kind.1, rng);
            let write = char::from(rng.one_of(&b"012"[..value]));
            row.push(Action(
                next,
                write,
                kinds[usize::try_from(next).expect("invariant: a state")].0,
            ));
        }
        row
    };

    let delta = kinds.iter().map(|kind| row(*kind, rng)).collect();
    let word = (0..length).map(|_| char::from(rng.one_of(b"123"))).collect();
    Instance { states, symbols: SYMBOLS.to_owned(), delta, word }
}

impl Task for TuringMachine {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let instance = drawn(difficulty, rng);
            let steps = reference_steps::<Self>(&instance, u64::MAX).unwrap_or(0);
            if steps >= 2 * instance.word.len() as u64 {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.states;
        let range = format!("is {states}; give 1 to {STATES_MAX}");
        InvalidInput::unless((1..=STATES_MAX).contains(&states), "states", range)?;
        InvalidInput::unless(
            instance.symbols == SYMBOLS,
            "symbols",
            format!("must be {SYMBOLS:?}"),
        )?;
        InvalidInput::unless(
            instance.delta.len() == states,
            "delta",
            format!("must have one row a state ({states})"),
        )?;
        let rows = instance.delta.iter().all(|row| row.len() == SYMBOLS.len());
        InvalidInput::unless(
            rows,
            "delta",
            format!("every row needs one entry for each of {SYMBOLS:?}"),
        )?;

        let exists = |next: i64| (REJECT..i64::try_from(states).unwrap_or(0)).contains(&next);
        let exist = instance.delta.iter().flatten().all(|entry| exists(entry.0));
        InvalidInput::unless(exist, "delta", format!("next states are below {states}, -1 or -2"))?;

        let falls = |(read, entry): (char, &Action)| match read {
            BLANK => entry.1 == BLANK,
            digit => ('0'..=digit).contains(&entry.1),
        };
        let fall = instance.delta.iter().all(|row| SYMBOLS.chars().zip(row).all(falls));
        InvalidInput::unless(
            fall,
            "delta",
            "a blank stays blank, and a digit becomes the same or a lower digit",
        )?;

        let word = instance.word.bytes().all(|c| (b'0'..=b'3').contains(&c));
        let word = word && (1..=LENGTH_MAX).contains(&instance.word.len());
        InvalidInput::unless(word, "word", format!("must be 1 to {LENGTH_MAX} digits 0 to 3"))?;

        // Only a run tells whether the head stays beside the word and the machine halts.
        let mut state = Self::start(instance);
        for _ in 0..Self::steps_max(instance) {
            let Some(action) = Self::reference(instance, &state) else { break };
            Self::step(instance, &mut state, action)
                .expect("invariant: reference actions are legal");
            InvalidInput::unless(
                in_window(&state),
                "delta",
                "the head must turn at the first blank beside the word",
            )?;
        }

        InvalidInput::unless(
            state.q < 0,
            "delta",
            "the machine must halt after the first sweep without a change",
        )
    }

    fn start(instance: &Instance) -> State {
        State {
            q: 0,
            head: 0,
            tape: instance.word.clone(),
            changed: 0,
            leftmost: 0,
            rightmost: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let states = i64::try_from(instance.states).unwrap_or(i64::MAX);
        limits::within("q", [state.q], REJECT..=states - 1)?;
        limits::length("tape", state.tape.len(), instance.word.len())?;
        limits::letters("tape", &state.tape, "0123")
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action(next, write, direction) = *action;
        if usize::try_from(next).is_ok_and(|next| next >= instance.states) {
            return Err(Illegal("there is no such state"));
        }
        if state.q < 0 {
            return Err(Illegal("the machine has halted"));
        }

        let place = state.place();
        if place.is_some() == (write == BLANK) {
            return Err(Illegal("cells of the word hold digits, all others blanks"));
        }

        if state.symbol() != write {
            state.changed += 1;
        }
        if let Some(place) = place {
            state.tape.replace_range(place..=place, write.encode_utf8(&mut [0; 4]));
        }

        state.head += direction.offset();
        state.leftmost = state.leftmost.min(state.head);
        state.rightmost = state.rightmost.max(state.head);
        state.q = next;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        instance.entry(state)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let kept =
            elsewhere(&before.tape, before.place()) == elsewhere(&after.tape, before.place());
        found.require(page::ONLY_HEAD_CELL, kept && after.head.abs_diff(before.head) == 1);
        found.require(page::DIGITS_FALL, digit_sum(&after.tape) <= digit_sum(&before.tape));

        let digits = after.tape.bytes().all(|c| c.is_ascii_digit());
        found.require(page::BLANK_STAYS, digits && after.tape.len() == instance.word.len());
        found.require(page::WINDOW, in_window(after));

        // What makes a trace sound: the table has one entry for each state and symbol, `apply` does
        // the counting, and the trace ends only where an entry halts.
        found.require(page::TABLE_ENTRY, instance.entry(before) == Some(*action));

        if Self::ended(instance, after) {
            found.require(page::HALTED, after.last.0.is_some_and(|last| last.0 < 0));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.q < 0
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Reading a digit above 0 lowers the sum of digits. Between two such steps lie at most two
        // sweeps over zeros, each ending at a blank; at the second blank the machine halts.
        let sum = digit_sum(&instance.word);
        sum + (sum + 1) * 2 * (instance.word.len() as u64 + 1)
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "accepted": state.q == ACCEPT,
            "tape": state.tape,
            "head": state.head,
            "changed": state.changed,
            "leftmost": state.leftmost,
            "rightmost": state.rightmost,
        })
    }
}

/// Returns whether the head, while the machine runs, is at most one blank away from the word.
fn in_window(state: &State) -> bool {
    let end = i64::try_from(state.tape.len()).unwrap_or(i64::MAX);
    state.q < 0 || (-1..=end).contains(&state.head)
}
