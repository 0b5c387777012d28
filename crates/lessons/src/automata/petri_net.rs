//! Petri Net: for each transition in turn the arcs up to one that finds too few tokens, up to the
//! first that is enabled.
// An arc is a digit, its weight, before the two digits of the tokens at its place.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::petri_net::{Instance, PetriNet, State};

use crate::Lesson;

pub struct PetriNetLesson;

impl Lesson for PetriNetLesson {
    type Task = PetriNet;

    fn view(instance: &Instance, state: &State) -> String {
        let transition = |number: usize| {
            let arcs: Vec<_> = instance.transitions[number]
                .inputs
                .iter()
                .map(|(place, weight)| arc(state, *place, *weight))
                .collect();
            format!("{number:02}:{}", arcs.join(","))
        };
        in_turn(instance, state).map(transition).collect::<Vec<_>>().join(" ")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        PetriNet::reference(instance, state)?;

        let mut line = String::new();
        for number in in_turn(instance, state) {
            line += &format!("{number:02}:");

            let mut enabled = true;
            for (place, weight) in &instance.transitions[number].inputs {
                enabled = state.marking[*place] >= *weight;
                line += &arc(state, *place, *weight);
                line.push(if enabled { '+' } else { '-' });
                if !enabled {
                    break;
                }
            }

            if enabled {
                return Some(line);
            }
            line.push(' ');
        }
        // A state with a reference step has an enabled transition, so this is not reached.
        None
    }
}

fn arc(state: &State, place: usize, weight: i64) -> String {
    format!("{weight}{:02}", state.marking[place])
}

/// The transitions in the order in which they are tried.
fn in_turn(instance: &Instance, state: &State) -> impl Iterator<Item = usize> {
    let count = instance.transitions.len();
    let first = usize::try_from(state.previous + 1).unwrap_or(0);
    (0..count).map(move |offset| (first + offset) % count)
}
