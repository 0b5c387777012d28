//! Lambda Reduction: the normal form of a term with De Bruijn indices, by contracting the leftmost
//! outermost redex.
//!
//! A step is one contraction; its line is the whole term after it.

use std::fmt;

use super::lambda_term::{
    self, CONTRACTIONS_MAX, LambdaTerm, NODES_MAX, Symbol, contracted, contracts_to, is_closed,
    normal_form, redexes, reduced,
};
use crate::tasks::pages::lambda_reduction as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `lambda-reduction`.
pub struct LambdaReduction;

/// The most nodes that a term may have on the way from an instance to its normal form.
const SIZE_MAX: usize = 80;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The closed term to reduce.
    #[serde(deserialize_with = "term_of")]
    pub term: LambdaTerm,
}

fn term_of<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<LambdaTerm, D::Error> {
    let refuse = || {
        serde::de::Error::custom(format!(
            "is not a closed term of indices, (L t) and (t u) with single blanks, of at most {NODES_MAX} nodes"
        ))
    };
    lambda_term::read(&String::deserialize(deserializer)?).ok_or_else(refuse)
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The current term.
    pub term: LambdaTerm,
    /// Nodes of the largest term so far, the input included.
    pub max_size: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// The input's normal form, which every term on the way has too.
    #[serde(skip)]
    pub normal_form: Option<LambdaTerm>,
}

/// The whole term after a contraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action(LambdaTerm);

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["<[L0-9() ]+>"];

    fn read(_: usize, fields: &Fields<'_>) -> Option<Self> {
        lambda_term::read(fields.text(0)?).map(Action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random binary tree of applications over `leaves` leaves, each written by `leaf`.
fn applications(
    leaves: usize,
    rng: &mut TaskRng,
    term: &mut Vec<Symbol>,
    leaf: &impl Fn(&mut TaskRng, &mut Vec<Symbol>),
) {
    if leaves == 1 {
        return leaf(rng, term);
    }

    term.push(Symbol::Apply);
    let left = rng.size(1, leaves - 1);
    applications(left, rng, term, leaf);
    applications(leaves - left, rng, term, leaf);
}

/// 1–3 binders around a tree of 1–5 indices.
fn abstraction(rng: &mut TaskRng, term: &mut Vec<Symbol>) {
    let binders = rng.size(1, 3);
    term.extend(std::iter::repeat_n(Symbol::Lambda, binders));

    let indices = rng.size(1, 5);
    applications(indices, rng, term, &|rng, term| {
        let index = u32::try_from(rng.index(binders)).expect("invariant: few binders");
        term.push(Symbol::Index(index));
    });
}

impl Task for LambdaReduction {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let (_, steps_max) = page::size::STEPS.range(difficulty);
        loop {
            let mut term = Vec::new();
            let count = rng.size(2, 5);
            applications(count, rng, &mut term, &abstraction);

            if !page::size::NODES.accepts(difficulty, term.len() as u64) {
                continue;
            }

            let term = LambdaTerm::from(term);
            let steps = reduced(&term, SIZE_MAX, steps_max.unsigned_abs()).map(|(_, steps)| steps);
            if steps.is_some_and(|steps| page::size::STEPS.accepts(difficulty, steps)) {
                return Instance { term };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        // Longer terms on the way would break `size` on the right trace.
        let reached = reduced(&instance.term, SIZE_MAX, CONTRACTIONS_MAX).is_some();
        let bounds = format!(
            "has no normal form within {CONTRACTIONS_MAX} contractions and {SIZE_MAX} nodes"
        );
        InvalidInput::unless(reached, "term", bounds)
    }

    fn start(instance: &Instance) -> State {
        let term = instance.term.clone();
        State { max_size: term.len(), normal_form: normal_form(&term), term, last: Last(None) }
    }

    fn check_state(_: &Instance, _: &State) -> Result<(), InvalidInput> {
        // Reading already refuses open terms and those of more than `NODES_MAX` nodes.
        Ok(())
    }

    fn complete(instance: &Instance, state: &mut State) {
        state.normal_form = normal_form(&instance.term);
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if Self::ended(instance, state) {
            return Err(Illegal("the term is in normal form"));
        }
        state.term = action.0.clone();
        state.max_size = state.max_size.max(action.0.len());
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        let place = redexes(&state.term).next()?;
        contracted(&state.term, place).map(Action)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::CLOSED, is_closed(&after.term));
        // No contraction changes the normal form.
        let ours = normal_form(&after.term);
        found.require(page::SAME_NORMAL_FORM, ours.is_some() && ours == after.normal_form);
        found.require(page::ONE_REDEX, contracts_to(&before.term, &after.term));
        found.require(page::SIZE, after.term.len() <= SIZE_MAX);
        if Self::ended(instance, after) {
            found.require(page::NORMAL, redexes(&after.term).next().is_none());
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        redexes(&state.term).next().is_none()
    }

    fn steps_max(_: &Instance) -> u64 {
        // No bound follows from the size: terms that take more contractions are refused.
        CONTRACTIONS_MAX
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "normal_form": state.term, "size": state.term.len(), "max_size": state.max_size })
    }
}
