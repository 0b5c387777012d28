//! Markov Chain: walk from state to state, each draw selecting the next one by the row's cumulative weights.
//!
//! A step is one draw; its line names the new state.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tasks::pages::markov_chain as page;
use crate::tasks::pattern::Fields;
use crate::tasks::spec::{Difficulty, Spec};
use crate::tasks::task::{ActionOf, Illegal, InvalidInput, Last, Task};
use crate::tasks::{TaskRng, Violations, limits};

pub struct MarkovChain;

const STATES_MAX: usize = 1_000;
const DRAWS_MAX: usize = 1_000_000;
/// A row's weights add up to this; draws lie below it.
const WHOLE: u64 = 1_000;

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    weights: Vec<Vec<u64>>,
    start: usize,
    draws: Vec<u64>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    t: usize,
    s: usize,
    visits: Vec<u64>,
    stays: u64,
    last: Last<Action>,
}

/// Enter this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(usize);

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// Thousandths in proportion to uniform weights; the last entry gets what rounding leaves.
fn draw_row(states: usize, rng: &mut TaskRng) -> Vec<u64> {
    let weights: Vec<u64> = (0..states).map(|_| 1 + rng.below(20)).collect();
    let sum: u64 = weights.iter().sum();
    let mut row: Vec<u64> = weights.iter().map(|weight| WHOLE * weight / sum).collect();
    row[states - 1] += WHOLE - row.iter().sum::<u64>();
    row
}

impl ActionOf for Action {
    type Task = MarkovChain;
}

impl Task for MarkovChain {
    type Instance = Instance;
    type State = State;
    type Action = Action;

    const SPEC: Spec = Spec { actions: &["s<nat>"], ..page::SPEC };

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let states = page::size::STATES.draw(difficulty, rng);
        let length = page::size::LENGTH.draw(difficulty, rng);
        let weights = (0..states).map(|_| draw_row(states, rng)).collect();
        Instance { weights, start: 0, draws: (0..length).map(|_| rng.below(WHOLE)).collect() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.weights.len();
        let range = format!("has {states} rows; give 1 to {STATES_MAX}");
        InvalidInput::unless((1..=STATES_MAX).contains(&states), "weights", range)?;
        let whole = |row: &Vec<u64>| row.iter().all(|weight| *weight <= WHOLE) && row.iter().sum::<u64>() == WHOLE;
        let rows = instance.weights.iter().all(|row| row.len() == states && whole(row));
        InvalidInput::unless(rows, "weights", format!("every row needs {states} weights that add up to {WHOLE}"))?;
        InvalidInput::unless(instance.start < states, "start", format!("must be below {states}"))?;
        let length = instance.draws.len();
        let range = format!("has {length} draws; give 1 to {DRAWS_MAX}");
        InvalidInput::unless((1..=DRAWS_MAX).contains(&length), "draws", range)?;
        let below = instance.draws.iter().all(|u| *u < WHOLE);
        InvalidInput::unless(below, "draws", format!("every rng must be below {WHOLE}"))
    }

    fn start(instance: &Instance) -> State {
        let mut visits = vec![0; instance.weights.len()];
        visits[instance.start] = 1;
        State { t: 0, s: instance.start, visits, stays: 0, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let states = instance.weights.len();
        limits::below("s", [state.s], states)?;
        limits::length("visits", state.visits.len(), states)?;
        limits::counts("visits", state.visits.iter().copied())
    }

    fn read(_: usize, fields: &Fields<'_>) -> Option<Action> {
        Some(Action(fields.nat(0)?))
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if action.0 >= instance.weights.len() {
            return Err(Illegal("there is no such state"));
        }
        if state.t >= instance.draws.len() {
            return Err(Illegal("every rng has been used"));
        }
        state.stays += u64::from(action.0 == state.s);
        state.s = action.0;
        state.visits[action.0] += 1;
        state.t += 1;
        state.last = Last(Some(*action));
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let u = *instance.draws.get(state.t)?;
        let mut sum = 0;
        let selected = instance.weights[state.s].iter().position(|weight| {
            sum += weight;
            sum > u
        });
        selected.map(Action)
    }

    fn violations(instance: &Instance, before: &State, _: &Action, after: &State) -> Violations {
        let mut found = Violations::NONE;
        found.require(page::VISIT_SUM, after.visits.iter().sum::<u64>() == after.t as u64 + 1);
        found.require(page::POSSIBLE, instance.weights[before.s][after.s] > 0);
        found.require(page::FLOW, after.stays <= after.t as u64 && after.visits[after.s] >= 1);
        if Self::ended(instance, after) {
            found.require(page::ALL_DRAWS, after.t == instance.draws.len());
        }
        found
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.t >= instance.draws.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.draws.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "final": state.s, "visits": state.visits, "stays": state.stays })
    }
}
