//! Bounded model checking: all lines in all states that clean lines reach. States with few
//! deviations from the algorithm come first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use super::vocabulary::lines;
use super::{Fooled, Judged};
use crate::tasks::{Kinds, Machine, Problem};

/// States that may wait for their turn, for each that is searched.
const OPEN_MAX: u64 = 16;

/// The findings of an exhaustive search.
#[derive(Clone, Debug, Serialize)]
pub struct Exhaustion {
    /// States that were searched.
    pub states: u64,
    /// True if these are all that clean lines reach, and all lines were tried in them.
    pub is_complete: bool,
    /// Ends of clean traces.
    pub ends: u64,
    /// The first clean trace that ended in a wrong answer, if one was found.
    pub fooled: Option<Fooled>,
}

/// The lines up to a state, the latest first.
struct Trail {
    line: String,
    before: Option<Rc<Trail>>,
}

impl Trail {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut at = Some(self);
        while let Some(Trail { line, before }) = at {
            lines.push(line.clone());
            at = before.as_deref();
        }
        lines.reverse();
        lines
    }
}

/// A state that is still to be searched.
struct Node {
    machine: Box<dyn Machine>,
    trail: Option<Rc<Trail>>,
    depth: usize,
    deviations: u32,
    /// The first line that is not the algorithm's.
    deviated_at: Option<usize>,
}

/// The states to search: fewest deviations first, then those furthest on.
#[derive(Default)]
struct Agenda {
    nodes: BTreeMap<(u32, Reverse<usize>), Vec<Node>>,
}

impl Agenda {
    fn push(&mut self, node: Node) {
        self.nodes.entry((node.deviations, Reverse(node.depth))).or_default().push(node);
    }

    fn pop(&mut self) -> Option<Node> {
        let mut first = self.nodes.first_entry()?;
        let node = first.get_mut().pop();
        if first.get().is_empty() {
            first.remove();
        }
        node
    }
}

/// Searches all traces of a problem that these kinds find clean, until it has tried `tries_max`
/// lines.
pub fn exhaust(problem: &Arc<dyn Problem>, kinds: Kinds, tries_max: u64) -> Exhaustion {
    let judged = Judged::new(Arc::clone(problem));
    let (lines, is_all) = lines(problem.as_ref());
    let states_max = (tries_max / lines.len().max(1) as u64).max(1);

    let mut found = Exhaustion { states: 0, is_complete: is_all, ends: 0, fooled: None };
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut agenda = Agenda::default();
    agenda.push(Node {
        machine: problem.start(),
        trail: None,
        depth: 0,
        deviations: 0,
        deviated_at: None,
    });
    let mut state = Vec::new();

    while let Some(mut node) = agenda.pop() {
        if found.states == states_max {
            found.is_complete = false;
            break;
        }
        found.states += 1;
        let right = node.machine.reference();

        for line in right.iter().chain(lines.iter().filter(|line| Some(*line) != right.as_ref())) {
            if node.machine.propose(line).is_err() || !node.machine.violations(kinds).is_empty() {
                continue;
            }
            let mut machine = node.machine.fork();
            machine.propose(line).expect("invariant: it applied above");
            machine.commit();

            let deviates = right.as_ref() != Some(line);
            let trail = Rc::new(Trail { line: line.clone(), before: node.trail.clone() });
            let deviated_at = node.deviated_at.or(deviates.then_some(node.depth));
            if let Some(answer) = machine.answer() {
                found.ends += 1;
                if !judged.accepts(&answer) {
                    found.fooled = Some(Fooled {
                        input: problem.input(),
                        lines: trail.lines(),
                        at: deviated_at.unwrap_or_default(),
                        answer,
                        right: judged.right,
                    });
                    return found;
                }
                continue;
            }

            machine.write_state(&mut state);
            if seen.len() as u64 >= states_max.saturating_mul(OPEN_MAX) {
                found.is_complete = false;
            } else if seen.insert(state.clone()) {
                agenda.push(Node {
                    machine,
                    trail: Some(trail),
                    depth: node.depth + 1,
                    deviations: node.deviations + u32::from(deviates),
                    deviated_at,
                });
            }
        }
    }
    found
}
