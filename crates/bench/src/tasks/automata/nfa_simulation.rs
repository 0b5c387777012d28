//! NFA Simulation: read a word and keep the set of states that the automaton may be in.
//!
//! A step is one move of the set by a letter, or one epsilon closure; its line names the new set.

use super::automaton;
use crate::tasks::pages::nfa_simulation as page;
use crate::tasks::prelude::*;
use crate::tasks::state_set::StateSet;

/// The task `nfa-simulation`.
pub struct NfaSimulation;

const STATES_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of states, which are 0..states.
    pub states: usize,
    /// Distinct letters.
    pub alphabet: String,
    /// Edges as (from, letter, to), sorted.
    pub delta: Vec<(u16, char, u16)>,
    /// Epsilon edges as (from, to), sorted.
    pub epsilon: Vec<(u16, u16)>,
    /// State before the first letter; 0 in generated inputs.
    pub start: u16,
    /// The accepting states, ascending.
    pub accept: Vec<usize>,
    /// The letters to read, in order.
    pub word: String,
}

impl Instance {
    /// The letter of the word at a place, from 0.
    pub fn letter(&self, pos: usize) -> Option<char> {
        self.word.as_bytes().get(pos).map(|c| char::from(*c))
    }

    fn moved(&self, from: &StateSet, letter: char) -> StateSet {
        let targets = from.iter().flat_map(|q| {
            // `delta` is sorted: the edges of a state and letter are neighbours.
            let first = self.delta.partition_point(|edge| (edge.0, edge.1) < (q, letter));
            self.delta[first..]
                .iter()
                .take_while(move |edge| (edge.0, edge.1) == (q, letter))
                .map(|edge| edge.2)
        });
        StateSet::closure(self.states, targets, |_| None)
    }

    fn closed(&self, set: &StateSet) -> StateSet {
        StateSet::closure(self.states, set.iter(), |q| {
            let first = self.epsilon.partition_point(|edge| edge.0 < q);
            self.epsilon[first..].iter().take_while(move |edge| edge.0 == q).map(|edge| edge.1)
        })
    }

    fn accepts(&self, set: &StateSet) -> bool {
        set.iter().any(|q| self.accept.binary_search(&usize::from(q)).is_ok())
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of letters read.
    pub pos: usize,
    /// States that the automaton may be in; the start alone at first.
    pub active: StateSet,
    /// True if the last action was `close`.
    pub closed: bool,
    /// Size of the largest closed set so far; 0 at the start.
    pub max_active: usize,
    /// Negative if wrong closes named fewer states than the moves before them.
    pub closure_added: i64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Reads a letter; names the states that its edges lead to.
        Move(set: StateSet) = "move <nats?>", "move {set}";
        /// Adds what epsilon edges reach; names the whole set.
        Close(set: StateSet) = "close <nats?>", "close {set}";
    }
}

fn size(set: &StateSet) -> i64 {
    i64::try_from(set.len()).expect("invariant: sets are small")
}

fn drawn(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
    let states = page::size::STATES.draw(difficulty, rng);
    let letters = page::size::ALPHABET.draw(difficulty, rng);
    let length = page::size::LENGTH.draw(difficulty, rng);
    let alphabet = "abc"[..letters].to_owned();
    let state =
        |rng: &mut TaskRng| u16::try_from(rng.index(states)).expect("invariant: few states");

    let mut delta = Vec::new();
    for q in 0..u16::try_from(states).expect("invariant: few states") {
        for letter in alphabet.chars() {
            let count = rng.one_of(&[0, 1, 1, 2]);
            let mut targets = Vec::with_capacity(count);
            while targets.len() < count {
                let target = state(rng);
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
            targets.sort_unstable();
            delta.extend(targets.into_iter().map(|target| (q, letter, target)));
        }
    }

    let mut epsilon = Vec::with_capacity(states / 3);
    while epsilon.len() < states / 3 {
        let edge = (state(rng), state(rng));
        if edge.0 != edge.1 && !epsilon.contains(&edge) {
            epsilon.push(edge);
        }
    }
    // `closed` finds the edges of a state by binary search.
    epsilon.sort_unstable();

    let accept = automaton::draw_accepting(states, 1, 4, rng);
    let word = automaton::draw_word(&alphabet, length, rng);
    Instance { states, alphabet, delta, epsilon, start: 0, accept, word }
}

impl Task for NfaSimulation {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let instance = drawn(difficulty, rng);
            // The cheap test comes first; the others need a whole run.
            if !automaton::separates(&instance.accept, instance.states) {
                continue;
            }

            let end = reference_end::<Self>(&instance, u64::MAX);
            let least = i64::try_from(instance.word.len() / 4).expect("invariant: words are short");
            let interesting = end.is_some_and(|(end, _)| {
                !end.active.is_empty() && end.max_active >= 3 && end.closure_added >= least
            });
            if interesting {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.states;
        let range = format!("is {states}; give 1 to {STATES_MAX}");
        InvalidInput::unless((1..=STATES_MAX).contains(&states), "states", range)?;
        automaton::validate_alphabet("alphabet", &instance.alphabet)?;

        let exists = |q: u16| usize::from(q) < states;
        let edges = instance
            .delta
            .iter()
            .all(|(q, letter, p)| exists(*q) && exists(*p) && instance.alphabet.contains(*letter));
        InvalidInput::unless(
            edges,
            "delta",
            format!("must name states below {states} and letters of the alphabet"),
        )?;
        let sorted = instance.delta.is_sorted_by(|a, b| a < b);
        InvalidInput::unless(sorted, "delta", "must be sorted, each edge once")?;

        let edges = instance.epsilon.iter().all(|(q, p)| exists(*q) && exists(*p));
        InvalidInput::unless(edges, "epsilon", format!("must name states below {states}"))?;
        let sorted = instance.epsilon.is_sorted_by(|a, b| a < b);
        InvalidInput::unless(sorted, "epsilon", "must be sorted, each edge once")?;

        automaton::validate_states(states, usize::from(instance.start), &instance.accept)?;
        automaton::validate_word(&instance.word, &instance.alphabet)
    }

    fn start(instance: &Instance) -> State {
        State {
            pos: 0,
            active: StateSet::of(instance.start),
            closed: false,
            max_active: 0,
            closure_added: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let exist = state.active.is_ascending_below(instance.states);
        InvalidInput::unless(
            exist,
            "active",
            format!("must be states below {}, ascending, each once", instance.states),
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let (Action::Move(set) | Action::Close(set)) = action;
        if !set.is_ascending_below(instance.states) {
            return Err(Illegal("the states must exist and be in ascending order, each once"));
        }

        match action {
            Action::Move(_) => {
                if !state.closed {
                    return Err(Illegal("a move follows a close"));
                }
                if state.pos >= instance.word.len() {
                    return Err(Illegal("the word has been read"));
                }

                state.pos += 1;
            }
            Action::Close(_) => {
                if state.closed {
                    return Err(Illegal("the set has just been closed"));
                }

                state.closure_added += size(set) - size(&state.active);
                state.max_active = state.max_active.max(set.len());
            }
        }

        state.closed = !state.closed;
        state.active.clone_from(set);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.closed {
            let letter = instance.letter(state.pos)?;
            Some(Action::Move(instance.moved(&state.active, letter)))
        } else {
            Some(Action::Close(instance.closed(&state.active)))
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // What makes a trace sound: `move-targets` and `closure` fix every set, and `apply` makes
        // moves and closes alternate until the word has been read.
        match action {
            Action::Close(set) => {
                let leaves = |edge: &(u16, u16)| set.contains(edge.0) && !set.contains(edge.1);
                found.require(page::CLOSED, !instance.epsilon.iter().any(leaves));
                found.require(page::SUPERSET, before.active.iter().all(|q| set.contains(q)));
                found.require(page::ALTERNATION, !matches!(before.last.0, Some(Action::Close(_))));
                found.require(page::CLOSURE, *set == instance.closed(&before.active));
            }
            Action::Move(set) => {
                let letter = instance.letter(before.pos);
                let mut entered = vec![false; instance.states];
                for (_, _, target) in instance.delta.iter().filter(|edge| Some(edge.1) == letter) {
                    entered[usize::from(*target)] = true;
                }
                found.require(page::ENTERABLE, set.iter().all(|q| entered[usize::from(q)]));
                found.require(page::ALTERNATION, matches!(before.last.0, Some(Action::Close(_))));
                let targets = letter.map(|letter| instance.moved(&before.active, letter));
                found.require(page::MOVE_TARGETS, Some(set) == targets.as_ref());
            }
        }

        if Self::ended(instance, after) {
            found.require(page::WHOLE_WORD, after.pos == instance.word.len() && after.closed);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.closed && state.pos >= instance.word.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        1 + 2 * instance.word.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        json!({
            "final": state.active,
            "accepted": instance.accepts(&state.active),
            "max_active": state.max_active,
            "closure_added": state.closure_added,
        })
    }
}
