//! Regex NFA: the next two states; or from the states that the letter leads to, what epsilon edges add to each in turn.
// States have one character each. An epsilon entry is a state and its targets: first the states that have one, then those
// that have two. In the derivation a target that is known already is a dot.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::regex::{Node, Quantifier};
use prime_bench::tasks::string_matching::regex_nfa::{Action, Instance, RegexNfa, State, nodes_left};

use crate::Lesson;
use crate::numbers::incremented;

pub struct Of;

/// The character of a state; automata of the benchmark have fewer states than there are characters.
fn name(q: u16) -> char {
    let others = "!#$%&'()*+,-/:;<=>?@[]^_{|}";
    ('A'..='Z').chain('a'..='z').chain(others.chars()).nth(usize::from(q)).unwrap_or('~')
}

fn names(states: &[u16]) -> String {
    states.iter().map(|q| name(*q)).collect()
}

/// What is left to build, if anything is.
fn to_build(instance: &Instance, state: &State) -> Option<Node> {
    let nodes = if state.pos < 0 { instance.nodes() } else { Vec::new() };
    nodes_left(&nodes, state).filter(|_| state.pos < 0)?.first().copied()
}

fn verb(node: Node) -> String {
    match node {
        Node::Letter(letter) => format!("lit {}", char::from(letter)),
        Node::Concatenation => "cat".to_owned(),
        Node::Alternation => "alt".to_owned(),
        Node::Quantified(Quantifier::Star) => "star".to_owned(),
        Node::Quantified(Quantifier::Plus) => "plus".to_owned(),
        Node::Quantified(Quantifier::Optional) => "opt".to_owned(),
    }
}

/// Where the next closure begins: the start, or the targets of the active states' edges with the next letter. `None` at the
/// end of the text.
fn seeds(instance: &Instance, state: &State) -> Option<Vec<u16>> {
    let Some(read) = state.letters_read() else { return Some(vec![state.automaton().0]) };
    let letter = *instance.text.as_bytes().get(read)?;
    let of_active = state.edges.iter().filter(|edge| state.active.contains(edge.from));
    Some(of_active.filter(|edge| edge.letter == Some(letter)).map(|edge| edge.to).collect())
}

/// The targets of a state's epsilon edges.
fn targets(state: &State, q: u16) -> Vec<u16> {
    state.edges.iter().filter(|edge| edge.letter.is_none() && edge.from == q).map(|edge| edge.to).collect()
}

impl Lesson for Of {
    type Task = RegexNfa;

    fn view(instance: &Instance, state: &State) -> String {
        if let Some(node) = to_build(instance, state) {
            let latest = &state.fragments[state.fragments.len().saturating_sub(2)..];
            let latest: String = latest.iter().map(|(s, t)| format!(" {s:02}-{t:02}")).collect::<Vec<_>>().concat();
            return format!("{} states {:02}{latest}", verb(node), state.states);
        }
        let (1, Some(seeds)) = (state.fragments.len(), seeds(instance, state)) else { return "-".to_owned() };
        let entries = |count: usize| -> String {
            let of_state = (0..state.states).map(|q| (q, targets(state, q)));
            let chosen = of_state.filter(|(_, targets)| targets.len() == count);
            chosen.map(|(q, targets)| format!("{}{}", name(q), names(&targets))).collect::<Vec<_>>().concat()
        };
        format!("from {} one {} two {}.", names(&seeds), entries(1), entries(2))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        if let Action::Build(node, ..) = RegexNfa::reference(instance, state)? {
            let next = || incremented(usize::from(state.states), 2);
            return Some(if node == Node::Concatenation { String::new() } else { next() });
        }
        let mut known = seeds(instance, state)?;
        let mut line = String::new();
        let mut next = 0;
        while let Some(q) = known.get(next).copied() {
            next += 1;
            let targets = targets(state, q);
            line.extend(Some(name(q)).filter(|_| !targets.is_empty()));
            for target in targets {
                if known.contains(&target) {
                    line.push('.');
                } else {
                    line.push(name(target));
                    known.push(target);
                }
            }
        }
        Some(line)
    }
}
