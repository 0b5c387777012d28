//! PDA Execution: run a deterministic pushdown automaton on a word, epsilon moves first.
//!
//! A step is one move, reading or epsilon; its line names the new state and what replaces the top
//! of the stack.

use std::fmt;

use super::automaton;
use crate::tasks::pages::pda_execution as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `pda-execution`.
pub struct PdaExecution;

const STATES_MAX: usize = 1_000;
const BOTTOM: char = 'Z';

/// State, letter or `""`, top of the stack, next state, and the string that replaces the top.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Move(pub usize, pub String, pub char, pub usize, pub String);

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of states, which are 0..states.
    pub states: usize,
    /// Letters of the word.
    pub alphabet: String,
    /// Symbols of the stack, the bottom first.
    pub stack_alphabet: String,
    /// Symbol that is alone on the stack at the start: `Z`.
    pub bottom: char,
    /// The table of moves, sorted, deterministic and total.
    pub delta: Vec<Move>,
    /// State before the first move; 0 in generated inputs.
    pub start: usize,
    /// The accepting states, ascending.
    pub accept: Vec<usize>,
    /// The letters to read, in order.
    pub word: String,
}

impl Instance {
    /// The move in state `q` with this letter, "" for none, and this top of the stack.
    pub fn find(&self, q: usize, letter: &str, top: char) -> Option<&Move> {
        // `delta` is sorted by state, letter and top.
        let place = self.delta.partition_point(|m| (m.0, m.1.as_str(), m.2) < (q, letter, top));
        self.delta.get(place).filter(|m| (m.0, m.1.as_str(), m.2) == (q, letter, top))
    }

    fn epsilon(&self, state: &State) -> Option<&Move> {
        self.find(state.q, "", state.top()?)
    }

    fn next(&self, state: &State) -> Option<&Move> {
        let reading = || self.find(state.q, self.word.get(state.pos..=state.pos)?, state.top()?);
        self.epsilon(state).or_else(reading)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of letters read.
    pub pos: usize,
    /// Current state.
    pub q: usize,
    /// The top is on the left.
    pub stack: String,
    /// Largest number of symbols that the stack has had; 1 at the start.
    pub max_depth: usize,
    /// Number of moves that read no letter.
    pub epsilon_moves: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The top of the stack; `None` if it is empty.
    pub fn top(&self) -> Option<char> {
        self.stack.chars().next()
    }

    fn below_top(&self) -> &str {
        self.stack.get(1..).unwrap_or("")
    }
}

/// The state that a move leads to, and what it pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    q: usize,
    push: String,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["q<nat> -", "q<nat> <[ZABCD]{1,2}>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let push = if form == 0 { String::new() } else { fields.text(1)?.to_owned() };
        Some(Action { q: fields.nat(0)?, push })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{} {}", self.q, if self.push.is_empty() { "-" } else { &self.push })
    }
}

fn drawn(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
    let states = page::size::STATES.draw(difficulty, rng);
    let symbols = page::size::STACK_SYMBOLS.draw(difficulty, rng);
    let length = page::size::LENGTH.draw(difficulty, rng);
    let stack_alphabet = "ZABCD"[..symbols].to_owned();

    let mut delta = Vec::new();
    for q in 0..states {
        for top in stack_alphabet.chars() {
            // An epsilon move is the only one of its state and top: the automaton is deterministic.
            if top != BOTTOM && rng.chance(1, 8) {
                delta.push(Move(q, String::new(), top, rng.index(states), String::new()));
                continue;
            }
            for letter in ["a", "b"] {
                let kind = rng.index(5);
                let pushed = char::from(rng.one_of(&stack_alphabet.as_bytes()[1..]));
                // Two in five push, two pop and one replaces the top; the bottom is never removed.
                let push = match kind {
                    0 | 1 => format!("{pushed}{top}"),
                    _ if top == BOTTOM => BOTTOM.to_string(),
                    2 | 3 => String::new(),
                    _ => pushed.to_string(),
                };
                delta.push(Move(q, letter.to_owned(), top, rng.index(states), push));
            }
        }
    }
    delta.sort_unstable();

    let accept = automaton::draw_accepting(states, 1, 2, rng);
    let word = automaton::draw_word("ab", length, rng);
    Instance {
        states,
        alphabet: "ab".to_owned(),
        stack_alphabet,
        bottom: BOTTOM,
        delta,
        start: 0,
        accept,
        word,
    }
}

/// Returns whether the move keeps the bottom symbol in place. Epsilon moves may only pop, so every
/// run ends.
fn keeps_bottom(m: &Move) -> bool {
    let Move(_, letter, top, _, push) = m;
    if letter.is_empty() {
        return *top != BOTTOM && push.is_empty();
    }
    // Only the bottom may push itself, below everything else.
    let above = if *top == BOTTOM { push.strip_suffix(BOTTOM) } else { Some(push.as_str()) };
    push.len() <= 2 && above.is_some_and(|above| !above.contains(BOTTOM))
}

fn validate_delta(instance: &Instance) -> Result<(), InvalidInput> {
    let sorted = instance.delta.is_sorted_by(|a, b| a < b);
    InvalidInput::unless(sorted, "delta", "must be sorted, each move once")?;

    // The table is deterministic and total, without surplus moves.
    let mut moves = 0;
    for q in 0..instance.states {
        for top in instance.stack_alphabet.chars() {
            if instance.find(q, "", top).is_some() {
                moves += 1;
                continue;
            }
            for place in 0..instance.alphabet.len() {
                let letter = &instance.alphabet[place..=place];
                let missing = format!("has no move for state {q}, letter {letter}, top {top}");
                InvalidInput::unless(instance.find(q, letter, top).is_some(), "delta", missing)?;
                moves += 1;
            }
        }
    }

    InvalidInput::unless(
        moves == instance.delta.len(),
        "delta",
        "must have one move a state, letter and top of the stack",
    )?;

    let known = |m: &Move| {
        m.3 < instance.states && m.4.chars().all(|c| instance.stack_alphabet.contains(c))
    };
    InvalidInput::unless(
        instance.delta.iter().all(known),
        "delta",
        "must name states and stack symbols that exist",
    )?;

    let kept = instance.delta.iter().all(keeps_bottom);
    InvalidInput::unless(
        kept,
        "delta",
        "pushes have at most two symbols, Z stays the bottom, and epsilon moves pop",
    )
}

impl Task for PdaExecution {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let instance = drawn(difficulty, rng);
            if !automaton::separates(&instance.accept, instance.states) {
                continue;
            }

            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(end, _)| end.max_depth >= 4 && end.epsilon_moves > 0) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.states;
        let range = format!("is {states}; give 1 to {STATES_MAX}");
        InvalidInput::unless((1..=STATES_MAX).contains(&states), "states", range)?;
        automaton::validate_alphabet("alphabet", &instance.alphabet)?;
        automaton::validate_alphabet("stack_alphabet", &instance.stack_alphabet)?;
        let symbols = instance.stack_alphabet.starts_with(BOTTOM);
        let symbols = symbols && instance.stack_alphabet.chars().all(|c| "ZABCD".contains(c));
        InvalidInput::unless(symbols, "stack_alphabet", "must be Z, then letters of ABCD")?;
        InvalidInput::unless(instance.bottom == BOTTOM, "bottom", "must be \"Z\"")?;

        validate_delta(instance)?;
        automaton::validate_states(states, instance.start, &instance.accept)?;
        automaton::validate_word(&instance.word, &instance.alphabet)
    }

    fn start(instance: &Instance) -> State {
        let stack = BOTTOM.to_string();
        State { pos: 0, q: instance.start, stack, max_depth: 1, epsilon_moves: 0, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("q", [state.q], instance.states)?;
        limits::letters("stack", &state.stack, &instance.stack_alphabet)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if action.q >= instance.states
            || !action.push.chars().all(|c| instance.stack_alphabet.contains(c))
        {
            return Err(Illegal("there is no such state or stack symbol"));
        }
        if state.stack.is_empty() {
            return Err(Illegal("the stack is empty"));
        }

        // The state alone decides if a letter is read, not the line.
        if instance.epsilon(state).is_some() {
            state.epsilon_moves += 1;
        } else if state.pos < instance.word.len() {
            state.pos += 1;
        } else {
            return Err(Illegal("the word has been read and no epsilon move applies"));
        }

        state.q = action.q;
        state.stack.replace_range(0..1, &action.push);
        state.max_depth = state.max_depth.max(state.stack.len());
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let Move(.., q, push) = instance.next(state)?;
        Some(Action { q: *q, push: push.clone() })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // The bottom occurs once, as the last symbol; an empty stack has lost it.
        found.require(
            page::BOTTOM,
            after.stack.find(BOTTOM).is_some_and(|place| place + 1 == after.stack.len()),
        );

        let change = after.stack.len().abs_diff(before.stack.len());
        found.require(page::DEPTH_CHANGE, change <= 1 && after.stack.ends_with(before.below_top()));
        found.require(page::DEPTH_BOUND, after.stack.len() <= 1 + after.pos);

        let exists = |m: &Move| m.3 == action.q && Some(m.2) == before.top() && m.4 == action.push;
        found.require(page::EXISTING_MOVE, instance.delta.iter().any(exists));

        // What makes a trace sound: the table is deterministic, `apply` does the counting, and the
        // trace ends only where no move is left.
        let is_due = |m: &Move| m.3 == action.q && m.4 == action.push;
        found.require(page::TABLE_MOVE, instance.next(before).is_some_and(is_due));

        if Self::ended(instance, after) {
            let exhausted = after.pos == instance.word.len() && instance.epsilon(after).is_none();
            found.require(page::EXHAUSTED, exhausted);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.pos >= instance.word.len() && instance.epsilon(state).is_none()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // An epsilon move pops what a reading move has pushed, one symbol a letter.
        2 * instance.word.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        json!({
            "final": state.q,
            "stack": state.stack,
            "accepted": instance.accept.binary_search(&state.q).is_ok(),
            "max_depth": state.max_depth,
            "epsilon_moves": state.epsilon_moves,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Kinds, find};

    #[test]
    fn an_empty_stack_has_lost_its_bottom() {
        let input = json!({
            "states": 2, "alphabet": "a", "stack_alphabet": "ZA", "bottom": "Z",
            "start": 0, "accept": [1], "word": "aa",
            "delta": [
                [0, "a", "A", 1, ""], [0, "a", "Z", 0, "AZ"],
                [1, "a", "A", 1, ""], [1, "a", "Z", 1, "Z"],
            ],
        });

        let task = find("pda-execution").expect("the task");
        let mut machine = task.read_input(&input).expect("a valid input").start();

        machine.propose("q1 -").expect("legal");
        let broken: Vec<_> =
            machine.violations(Kinds::ALL).iter(task.spec()).map(|c| c.name).collect();
        assert_eq!(broken, ["bottom", "existing-move", "table-move", "next-step"]);

        machine.commit();
        assert!(machine.propose("q1 -").is_err(), "nothing can be popped any more");
    }
}
