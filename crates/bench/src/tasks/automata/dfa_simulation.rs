//! DFA Simulation: read a word letter by letter and follow the transition table.
//!
//! A step is one letter read; its line names the new state.

use super::automaton;
use crate::tasks::pages::dfa_simulation as page;
use crate::tasks::prelude::*;

/// The task `dfa-simulation`.
pub struct DfaSimulation;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of states, which are 0..states.
    pub states: usize,
    /// Distinct letters, in the order of the columns of `delta`.
    pub alphabet: String,
    /// The next state, by state and place of the letter in the alphabet.
    pub delta: Vec<Vec<usize>>,
    /// State before the first letter; 0 in generated inputs.
    pub start: usize,
    /// The accepting states, ascending.
    pub accept: Vec<usize>,
    /// The letters to read, in order.
    pub word: String,
}

impl Instance {
    /// Column of delta for the letter at this place of the word.
    pub fn column(&self, pos: usize) -> Option<usize> {
        let letter = *self.word.as_bytes().get(pos)?;
        self.alphabet.bytes().position(|c| c == letter)
    }

    /// The entry of the table for a state and the next letter; `None` after the last.
    fn entry(&self, state: &State) -> Option<usize> {
        Some(self.delta[state.q][self.column(state.pos)?])
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
    /// How often each state has occurred, the start included.
    pub visits: Vec<u64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// Enter this state.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { q: usize } = "q<nat>", "q{q}"
}

impl Task for DfaSimulation {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let states = page::size::STATES.draw(difficulty, rng);
            let letters = page::size::ALPHABET.draw(difficulty, rng);
            let length = page::size::LENGTH.draw(difficulty, rng);
            let alphabet = "abcd"[..letters].to_owned();
            let delta: Vec<Vec<usize>> =
                (0..states).map(|_| (0..letters).map(|_| rng.index(states)).collect()).collect();
            let accept = automaton::draw_accepting(states, 1, 2, rng);
            let word: Vec<usize> = (0..length).map(|_| rng.index(letters)).collect();

            // Runs that visit fewer than half of the states are rejected.
            let mut seen = vec![false; states];
            seen[0] = true;
            word.iter().fold(0, |q, letter| {
                let next: usize = delta[q][*letter];
                seen[next] = true;
                next
            });
            let visited = seen.iter().filter(|seen| **seen).count();
            if !automaton::separates(&accept, states) || 2 * visited < states {
                continue;
            }

            let word =
                word.into_iter().map(|letter| char::from(alphabet.as_bytes()[letter])).collect();
            return Instance { states, alphabet, delta, start: 0, accept, word };
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.states;
        let range = format!("is {states}; give 1 to 10000");
        InvalidInput::unless((1..=10_000).contains(&states), "states", range)?;
        automaton::validate_alphabet("alphabet", &instance.alphabet)?;

        let letters = instance.alphabet.as_bytes();
        InvalidInput::unless(
            instance.delta.len() == states,
            "delta",
            format!("must have one row a state ({states})"),
        )?;

        let rows = instance
            .delta
            .iter()
            .all(|row| row.len() == letters.len() && row.iter().all(|q| *q < states));
        InvalidInput::unless(
            rows,
            "delta",
            format!("every row needs one state below {states} for each letter"),
        )?;

        automaton::validate_states(states, instance.start, &instance.accept)?;
        automaton::validate_word(&instance.word, &instance.alphabet)
    }

    fn start(instance: &Instance) -> State {
        let mut visits = vec![0; instance.states];
        visits[instance.start] = 1;
        State { pos: 0, q: instance.start, visits, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("q", [state.q], instance.states)?;
        limits::length("visits", state.visits.len(), instance.states)?;
        limits::counts("visits", state.visits.iter().copied())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if action.q >= instance.states {
            return Err(Illegal("there is no such state"));
        }
        if state.pos >= instance.word.len() {
            return Err(Illegal("the word has been read"));
        }

        state.q = action.q;
        state.visits[action.q] += 1;
        state.pos += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        instance.entry(state).map(|q| Action { q })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::VISIT_SUM, after.visits.iter().sum::<u64>() == after.pos as u64 + 1);

        // Letter and state judged separately say which of them is wrong.
        let reachable = instance
            .column(before.pos)
            .is_some_and(|column| instance.delta.iter().any(|row| row[column] == after.q));
        found.require(page::POSSIBLE_TARGET, reachable);
        found.require(page::SUCCESSOR, instance.delta[before.q].contains(&after.q));

        // What makes a trace sound: the table has one entry for each state and letter, and `apply`
        // counts the visits.
        found.require(page::TABLE_ENTRY, instance.entry(before) == Some(after.q));

        found.require(
            page::PROGRESS,
            after.pos == before.pos + 1 && after.pos <= instance.word.len(),
        );

        if Self::ended(instance, after) {
            found.require(page::WHOLE_WORD, after.pos == instance.word.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.pos >= instance.word.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.word.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        json!({
            "final": state.q,
            "accepted": instance.accept.contains(&state.q),
            "visits": state.visits,
        })
    }
}
