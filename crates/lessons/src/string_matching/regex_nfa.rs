//! Regex NFA: the number of states, or the fragments to be joined; or what epsilon edges lead to
//! from the targets of the letter's edges, and its numbers by rows of ten.
// Without a derivation: the number of states is even, so that the second of the next two is the
// first with another last digit. An epsilon entry is a state and its one or two targets. A
// derivation follows edges while there is one from each state: `.` where a state is known already,
// `!` where there is no edge, `=` where there are two. States of the last kind are taken up in
// turn, after a space, each with the ways from both targets.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::regex::{Node, Quantifier};
use prime_bench::tasks::string_matching::regex_nfa::{
    Action, Instance, RegexNfa, State, nodes_left,
};

use crate::Lesson;

pub struct RegexNfaLesson;

/// The character of a state; from the 78th on two, the first of them a tilde.
fn name(q: u16) -> String {
    let names = || ('A'..='Z').chain('a'..='z').chain("#$%&'()*+,-/:;<>?@[]^_{|}".chars());

    let place = usize::from(q);
    match (
        names().nth(place),
        place.checked_sub(names().count()).and_then(|place| names().nth(place)),
    ) {
        (Some(name), _) => name.to_string(),
        (_, Some(name)) => format!("~{name}"),
        _ => "~~".to_owned(),
    }
}

fn names(states: &[u16]) -> String {
    states.iter().map(|q| name(*q)).collect::<Vec<_>>().concat()
}

/// The part that is left to build, if there is one.
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

/// The states where the next closure begins: the start, or the targets of the active states' edges
/// with the next letter. `None` at the end of the text.
fn seeds(instance: &Instance, state: &State) -> Option<Vec<u16>> {
    let Some(read) = state.letters_read() else { return Some(vec![state.automaton().0]) };
    let letter = *instance.text.as_bytes().get(read)?;
    let of_active = state.edges.iter().filter(|edge| state.active.contains(edge.from));
    Some(of_active.filter(|edge| edge.letter == Some(letter)).map(|edge| edge.to).collect())
}

/// The targets of a state's epsilon edges.
fn targets(state: &State, q: u16) -> Vec<u16> {
    state
        .edges
        .iter()
        .filter(|edge| edge.letter.is_none() && edge.from == q)
        .map(|edge| edge.to)
        .collect()
}

impl Lesson for RegexNfaLesson {
    type Task = RegexNfa;

    fn view(instance: &Instance, state: &State) -> String {
        if let Some(node) = to_build(instance, state) {
            if node != Node::Concatenation {
                return format!("{} states {}", verb(node), state.states);
            }

            let latest = &state.fragments[state.fragments.len().saturating_sub(2)..];
            let latest: Vec<_> = latest.iter().map(|(s, t)| format!("{s}-{t}")).collect();
            return format!("{} {}", verb(node), latest.join(" "));
        }

        let (1, Some(seeds)) = (state.fragments.len(), seeds(instance, state)) else {
            return "-".to_owned();
        };

        if seeds.is_empty() {
            return "from none".to_owned();
        }

        let entry = |q: u16| -> Option<String> {
            let targets = targets(state, q);
            (!targets.is_empty()).then(|| format!(" {}{}", name(q), names(&targets)))
        };
        let edges: String = (0..state.states).filter_map(entry).collect();

        format!("from {} of {}{edges}", names(&seeds), state.states)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        if let Action::Build(..) = RegexNfa::reference(instance, state)? {
            return Some(String::new());
        }

        let seeds = seeds(instance, state)?;
        if seeds.is_empty() {
            return Some(String::new());
        }

        let mut closure = Closure::default();
        for seed in seeds {
            closure.line += &name(seed);
            closure.follow(state, seed);
        }
        // Forks that are found on the way join the queue.
        let mut next = 0;
        while let Some(q) = closure.forks.get(next).copied() {
            next += 1;
            closure.line += &format!(" {}", name(q));
            for target in targets(state, q) {
                closure.go(state, target);
            }
        }

        let rows = rows(&mut closure.known, state.states);
        Some(closure.line + &rows)
    }
}

/// The states that epsilon edges lead to, and how they were found.
#[derive(Default)]
struct Closure {
    known: Vec<u16>,
    /// States with two edges, in the order in which they were found.
    forks: Vec<u16>,
    line: String,
}

impl Closure {
    /// Goes to the target of an edge, unless it is known.
    fn go(&mut self, state: &State, target: u16) {
        if self.known.contains(&target) {
            self.line.push('.');
        } else {
            self.line += &name(target);
            self.follow(state, target);
        }
    }

    /// Follows the edges from a state that was written as long as there is one from each.
    fn follow(&mut self, state: &State, q: u16) {
        if self.known.contains(&q) {
            self.line.push('.');
            return;
        }
        self.known.push(q);
        match targets(state, q)[..] {
            [] => self.line.push('!'),
            [target] => self.go(state, target),
            _ => {
                self.line.push('=');
                self.forks.push(q);
            }
        }
    }
}

/// The numbers of states by their tens: a quotation mark and the tens, then the units in ascending
/// order.
fn rows(known: &mut [u16], states: u16) -> String {
    known.sort_unstable();
    let row = |tens: u16| -> String {
        let units = known.iter().filter(|q| **q / 10 == tens).map(|q| (q % 10).to_string());
        format!("\"{tens}{}", units.collect::<Vec<_>>().concat())
    };
    (0..states.div_ceil(10)).map(row).collect::<Vec<_>>().concat()
}
