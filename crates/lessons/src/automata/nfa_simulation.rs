//! NFA Simulation: follows the epsilon edges until nothing is new, then names every state of the
//! set.
// States are letters: capitals for the members of a set, small ones for the ends of edges and for
// candidates. A state is in the set if its capital stands anywhere before.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::nfa_simulation::{Action, Instance, NfaSimulation, State};

use crate::Lesson;

pub struct NfaSimulationLesson;

impl Lesson for NfaSimulationLesson {
    type Task = NfaSimulation;

    fn view(instance: &Instance, state: &State) -> String {
        let last = u16::try_from(instance.states - 1).map_or('-', candidate);

        if state.closed {
            let letter = instance.letter(state.pos);
            let targets = |q: u16| {
                let edges =
                    instance.delta.iter().filter(|edge| edge.0 == q && Some(edge.1) == letter);
                or_none(edges.map(|edge| member(edge.2)).collect())
            };
            let targets: Vec<_> = state.active.iter().map(targets).collect();
            format!("move to {last} {}", or_none(targets.join(" ")))
        } else {
            let edges: Vec<_> = instance
                .epsilon
                .iter()
                .map(|(q, p)| [candidate(*q), candidate(*p)].iter().collect::<String>())
                .collect();
            let active = or_none(state.active.iter().map(member).collect());
            format!("close to {last} {active} by {}", or_none(edges.join(" ")))
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let (Action::Move(set) | Action::Close(set)) = NfaSimulation::reference(instance, state)?;

        let mut line = if state.closed { String::new() } else { closure(instance, state) };
        for q in 0..u16::try_from(instance.states).ok()? {
            line.push(candidate(q));
            if set.contains(q) {
                line += &q.to_string();
            }
        }

        Some(line)
    }
}

/// Passes over the epsilon edges until one finds nothing new. An edge is written with the capital
/// of its target, if its source is in the set and its target is not yet, or a dot.
fn closure(instance: &Instance, state: &State) -> String {
    let mut inside: Vec<u16> = state.active.iter().collect();
    let mut line = String::new();
    loop {
        let before = inside.len();
        for (q, p) in &instance.epsilon {
            let new = inside.contains(q) && !inside.contains(p);
            line.extend([candidate(*q), candidate(*p), if new { member(*p) } else { '.' }]);
            inside.extend(new.then_some(*p));
        }
        line.push(' ');
        if inside.len() == before {
            return line;
        }
    }
}

/// The benchmark's automata have at most 30 states.
fn letter(first: u8, q: u16) -> char {
    char::from(first + u8::try_from(q % 30).expect("invariant: below 30"))
}

fn member(q: u16) -> char {
    letter(b'A', q)
}

fn candidate(q: u16) -> char {
    letter(b'a', q)
}

fn or_none(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
