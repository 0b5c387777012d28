//! Petri Net: fire transitions in round-robin order, each time the next one that is enabled.
//!
//! A step is one firing; its line names the transition.

use crate::tasks::pages::petri_net as page;
use crate::tasks::prelude::*;

/// The task `petri-net`.
pub struct PetriNet;

const PLACES_MAX: usize = 1_000;
const TRANSITIONS_MAX: usize = 1_000;
/// Bound on the arcs of all transitions together: every firing checks the state equation, which
/// reads each arc.
const ARCS_MAX: usize = 100_000;
const TOKENS_MAX: i64 = 1_000_000;
const FIRINGS_MAX: u64 = 1_000_000;

/// Places, ascending, each with a weight.
type Arcs = Vec<(usize, i64)>;

/// A transition with the places before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// Arcs as (place, weight), places ascending: the tokens that a firing consumes.
    #[serde(rename = "in")]
    pub inputs: Arcs,
    /// Arcs as (place, weight), places ascending: the tokens that a firing produces.
    #[serde(rename = "out")]
    pub outputs: Arcs,
}

impl Transition {
    fn enabled(&self, marking: &[i64]) -> bool {
        self.inputs.iter().all(|(place, weight)| marking[*place] >= *weight)
    }

    /// Fires `times` times, whether enabled or not.
    fn fire(&self, marking: &mut [i64], times: i64) {
        for (place, weight) in &self.inputs {
            marking[*place] -= weight * times;
        }
        for (place, weight) in &self.outputs {
            marking[*place] += weight * times;
        }
    }
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Tokens of each place at the start.
    pub marking: Vec<i64>,
    /// The transitions, in the order of their numbers, from 0.
    pub transitions: Vec<Transition>,
    /// Most firings; fewer happen if no transition is enabled.
    pub firings: u64,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Tokens of each place.
    pub marking: Vec<i64>,
    /// How often each transition has fired.
    pub fired: Vec<u64>,
    /// The transition fired last, from which the round-robin continues; -1 at the start.
    pub previous: i64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl Instance {
    /// The transitions in the order in which they are looked at after `previous`.
    fn in_turn(&self, previous: i64) -> impl Iterator<Item = usize> {
        let count = self.transitions.len();
        let first = usize::try_from(previous + 1).expect("invariant: -1 at least");
        (0..count).map(move |offset| (first + offset) % count)
    }
}

impl State {
    fn firings(&self) -> u64 {
        self.fired.iter().sum()
    }
}

word_actions!(Action {
    /// `fire t`: fires transition t.
    Fire(transition) = "fire",
});

/// `weight` places drawn with repetition, none three times, as arcs.
fn draw_arcs(places: usize, weight: usize, rng: &mut TaskRng) -> Arcs {
    loop {
        let mut counts = vec![0; places];
        for _ in 0..weight {
            counts[rng.index(places)] += 1;
        }

        if counts.iter().all(|count| *count < 3) {
            return counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        }
    }
}

fn drawn(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
    let places = page::size::PLACES.draw(difficulty, rng);
    let firings = page::size::FIRINGS.draw(difficulty, rng) as u64;
    let marking = (0..places).map(|_| rng.between(0, 3)).collect();
    let count = places + rng.size(0, 5);

    let transition = |rng: &mut TaskRng| {
        // One weight for both sides, so that firings conserve the tokens.
        let weight = rng.size(1, 3);
        let inputs = draw_arcs(places, weight, rng);
        loop {
            let outputs = draw_arcs(places, weight, rng);
            if outputs != inputs {
                return Transition { inputs, outputs };
            }
        }
    };

    Instance { marking, transitions: (0..count).map(|_| transition(rng)).collect(), firings }
}

impl Task for PetriNet {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let instance = drawn(difficulty, rng);
            let end = reference_end::<Self>(&instance, u64::MAX);
            let lively = end.is_some_and(|(end, steps)| {
                steps == instance.firings
                    && end.fired.iter().filter(|times| **times > 0).count() >= 3
            });
            if lively {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let places = instance.marking.len();
        let range = format!("has {places} places; give 1 to {PLACES_MAX}");
        InvalidInput::unless((1..=PLACES_MAX).contains(&places), "marking", range)?;
        let tokens = instance.marking.iter().all(|tokens| (0..=TOKENS_MAX).contains(tokens));
        InvalidInput::unless(
            tokens,
            "marking",
            format!("every place holds 0 to {TOKENS_MAX} tokens"),
        )?;

        let count = instance.transitions.len();
        let range = format!("has {count} transitions; give 1 to {TRANSITIONS_MAX}");
        InvalidInput::unless((1..=TRANSITIONS_MAX).contains(&count), "transitions", range)?;

        let sides = || {
            instance
                .transitions
                .iter()
                .flat_map(|transition| [&transition.inputs, &transition.outputs])
        };
        let arcs = sides().map(Vec::len).sum::<usize>();
        let range = format!("have {arcs} arcs; give up to {ARCS_MAX}");
        InvalidInput::unless(arcs <= ARCS_MAX, "transitions", range)?;

        let ascending = sides().all(|arcs| {
            arcs.is_sorted_by(|a, b| a.0 < b.0) && arcs.iter().all(|arc| arc.0 < places)
        });
        InvalidInput::unless(
            ascending,
            "transitions",
            "arcs name places that exist, ascending, each once",
        )?;
        let weights = sides().flatten().all(|arc| (1..=TOKENS_MAX).contains(&arc.1));
        InvalidInput::unless(weights, "transitions", format!("weights are 1 to {TOKENS_MAX}"))?;

        let weight = |arcs: &Arcs| arcs.iter().map(|arc| arc.1).sum::<i64>();
        let conserving =
            instance.transitions.iter().all(|t| weight(&t.inputs) == weight(&t.outputs));
        InvalidInput::unless(
            conserving,
            "transitions",
            "each must produce as many tokens as it consumes",
        )?;

        let firings = (1..=FIRINGS_MAX).contains(&instance.firings);
        InvalidInput::unless(
            firings,
            "firings",
            format!("is {}; give 1 to {FIRINGS_MAX}", instance.firings),
        )
    }

    fn start(instance: &Instance) -> State {
        let fired = vec![0; instance.transitions.len()];
        State { marking: instance.marking.clone(), fired, previous: -1, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::length("marking", state.marking.len(), instance.marking.len())?;
        limits::counts("marking", state.marking.iter().copied())?;
        let transitions = instance.transitions.len();
        limits::length("fired", state.fired.len(), transitions)?;
        let few = state.fired.iter().all(|times| *times <= instance.firings);
        InvalidInput::unless(
            few,
            "fired",
            format!("no transition fires more than {} times", instance.firings),
        )?;
        let last = i64::try_from(transitions).unwrap_or(i64::MAX) - 1;
        limits::within("previous", [state.previous], -1..=last)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action::Fire(number) = *action;
        let transition =
            instance.transitions.get(number).ok_or(Illegal("there is no such transition"))?;
        if !transition.enabled(&state.marking) {
            return Err(Illegal("the transition is not enabled"));
        }
        if state.firings() >= instance.firings {
            return Err(Illegal("all firings are done"));
        }

        transition.fire(&mut state.marking, 1);
        state.fired[number] += 1;
        state.previous = i64::try_from(number).expect("invariant: few transitions");
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.firings() >= instance.firings {
            return None;
        }

        let mut order = instance.in_turn(state.previous);
        order.find(|number| instance.transitions[*number].enabled(&state.marking)).map(Action::Fire)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(
            page::TOKENS,
            after.marking.iter().sum::<i64>() == instance.marking.iter().sum::<i64>(),
        );
        found.require(page::NON_NEGATIVE, after.marking.iter().all(|tokens| *tokens >= 0));

        // The order of firings does not matter for the marking: only how often each one fired.
        let mut marking = instance.marking.clone();
        for (transition, times) in instance.transitions.iter().zip(&after.fired) {
            transition
                .fire(&mut marking, i64::try_from(*times).expect("invariant: firings are bounded"));
        }
        found.require(page::STATE_EQUATION, after.marking == marking);

        // What makes a trace sound: `apply` fires enabled transitions only, `round-robin` lets it
        // pass over none, and the trace ends only after `firings` of them or where none is enabled.
        let Action::Fire(number) = *action;
        let is_enabled = |other: usize| instance.transitions[other].enabled(&before.marking);
        let mut passed_over =
            instance.in_turn(before.previous).take_while(|other| *other != number);
        found.require(page::ROUND_ROBIN, !passed_over.any(is_enabled));

        let firings = after.firings();
        found.require(page::COUNT, firings == before.firings() + 1 && firings <= instance.firings);

        if Self::ended(instance, after) {
            let stuck = || {
                !instance.transitions.iter().any(|transition| transition.enabled(&after.marking))
            };
            found.require(page::DONE, firings == instance.firings || stuck());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.firings() >= instance.firings
            || !instance.transitions.iter().any(|transition| transition.enabled(&state.marking))
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.firings
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "marking": state.marking,
            "fired": state.fired,
            "tokens": state.marking.iter().sum::<i64>(),
        })
    }
}
