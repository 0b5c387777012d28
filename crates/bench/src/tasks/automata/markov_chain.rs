//! Markov Chain: walk from state to state, each draw selecting the next one by the row's cumulative
//! weights.
//!
//! A step is one draw; its line names the new state.

use std::sync::OnceLock;

use crate::tasks::pages::markov_chain as page;
use crate::tasks::prelude::*;

/// The task `markov-chain`.
pub struct MarkovChain;

const STATES_MAX: usize = 1_000;
const DRAWS_MAX: usize = 1_000_000;
/// A row's weights add up to this; draws lie below it.
const WHOLE: u64 = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Probability of the step from i to j, in thousandths; each row adds up to 1000.
    pub weights: Vec<Vec<u64>>,
    /// State before the first draw; 0 in generated inputs.
    pub start: usize,
    /// The draws, each in 0..=999, in order.
    pub draws: Vec<u64>,
    #[serde(skip)]
    least_before: OnceLock<Vec<u64>>,
}

impl Instance {
    /// The least sum of the weights before each state, over all rows: with a lesser draw no row
    /// selects the state.
    fn least_before(&self) -> &[u64] {
        self.least_before.get_or_init(|| {
            let mut least = vec![WHOLE; self.weights.len()];
            for row in &self.weights {
                let mut sum = 0;
                for (least, weight) in least.iter_mut().zip(row) {
                    *least = sum.min(*least);
                    sum += weight;
                }
            }
            least
        })
    }

    /// The sums of the weights of a row before this entry, and with it: the draws that select it
    /// lie between them.
    fn sums(&self, row: usize, entry: usize) -> (u64, u64) {
        let before = self.weights[row][..entry].iter().sum();
        (before, before + self.weights[row][entry])
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of draws used.
    pub t: usize,
    /// Current state.
    pub s: usize,
    /// How often each state has occurred, the start included.
    pub visits: Vec<u64>,
    /// Number of steps from a state to itself.
    pub stays: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// Enter this state.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { state: usize } = "s<nat>", "s{state}"
}

/// Thousandths in proportion to uniform weights; the last entry gets what rounding leaves.
fn draw_row(states: usize, rng: &mut TaskRng) -> Vec<u64> {
    let weights: Vec<u64> = (0..states).map(|_| 1 + rng.below(20)).collect();
    let sum: u64 = weights.iter().sum();
    let mut row: Vec<u64> = weights.iter().map(|weight| WHOLE * weight / sum).collect();
    row[states - 1] += WHOLE - row.iter().sum::<u64>();
    row
}

impl Task for MarkovChain {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let states = page::size::STATES.draw(difficulty, rng);
        let length = page::size::LENGTH.draw(difficulty, rng);
        let weights = (0..states).map(|_| draw_row(states, rng)).collect();
        let draws = (0..length).map(|_| rng.below(WHOLE)).collect();
        Instance { weights, start: 0, draws, least_before: OnceLock::new() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let states = instance.weights.len();
        let range = format!("has {states} rows; give 1 to {STATES_MAX}");
        InvalidInput::unless((1..=STATES_MAX).contains(&states), "weights", range)?;

        let whole = |row: &Vec<u64>| {
            row.iter().all(|weight| *weight <= WHOLE) && row.iter().sum::<u64>() == WHOLE
        };
        let rows = instance.weights.iter().all(|row| row.len() == states && whole(row));
        InvalidInput::unless(
            rows,
            "weights",
            format!("every row needs {states} weights that add up to {WHOLE}"),
        )?;
        InvalidInput::unless(instance.start < states, "start", format!("must be below {states}"))?;

        let length = instance.draws.len();
        let range = format!("has {length} draws; give 1 to {DRAWS_MAX}");
        InvalidInput::unless((1..=DRAWS_MAX).contains(&length), "draws", range)?;
        let below = instance.draws.iter().all(|u| *u < WHOLE);
        InvalidInput::unless(below, "draws", format!("every draw must be below {WHOLE}"))
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

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if action.state >= instance.weights.len() {
            return Err(Illegal("there is no such state"));
        }
        if state.t >= instance.draws.len() {
            return Err(Illegal("every draw has been used"));
        }

        state.stays += u64::from(action.state == state.s);
        state.s = action.state;
        state.visits[action.state] += 1;
        state.t += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let u = *instance.draws.get(state.t)?;
        let mut sum = 0;
        let selected = instance.weights[state.s].iter().position(|weight| {
            sum += weight;
            sum > u
        });
        selected.map(|state| Action { state })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::VISIT_SUM, after.visits.iter().sum::<u64>() == after.t as u64 + 1);
        found.require(page::POSSIBLE, instance.weights[before.s][after.s] > 0);
        found.require(page::FLOW, after.stays <= after.t as u64 && after.visits[after.s] >= 1);

        let draw = instance.draws.get(before.t);
        let (least, end) = instance.sums(before.s, after.s);
        found.require(page::DRAW_BELOW, draw.is_some_and(|u| *u < end));
        // What makes a trace sound: each draw lies in the interval of one state, and `apply` counts
        // visits and stays.
        found.require(page::SELECTED, draw.is_some_and(|u| (least..end).contains(u)));
        // Taken over all rows: a state that no row selects is the coarser error.
        found.require(
            page::POSSIBLE_DRAW,
            draw.is_some_and(|u| *u >= instance.least_before()[after.s]),
        );

        if Self::ended(instance, after) {
            found.require(page::ALL_DRAWS, after.t == instance.draws.len());
        }
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
