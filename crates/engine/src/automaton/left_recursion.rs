//! Finds left-recursive rules, which reach themselves before any byte: their closure would never
//! end.

use std::collections::HashSet;

use super::network::{Network, Node, NodeId};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It is on the current path.
    UnderWay,
    /// It was walked; true if it can be empty.
    Done(bool),
}

/// A rule whose nodes before the first byte are being walked.
struct Visit {
    rule: usize,
    todo: Vec<NodeId>,
    seen: HashSet<NodeId>,
    is_empty: bool,
}

impl Visit {
    fn new(network: &Network, rule: usize) -> Self {
        Self { rule, todo: vec![network.start(rule)], seen: HashSet::new(), is_empty: false }
    }
}

/// A left-recursive rule, if there is one.
///
/// It matters whether a rule can be empty only where it is entered without a byte, so one
/// depth-first search answers both questions. It keeps its own stack, because chains of rules may
/// be long.
pub(super) fn left_recursive(network: &Network) -> Option<usize> {
    let mut known = vec![Known::Nothing; network.rules()];
    for rule in 0..network.rules() {
        if known[rule] != Known::Nothing {
            continue;
        }
        known[rule] = Known::UnderWay;
        let mut path = vec![Visit::new(network, rule)];

        while let Some(visit) = path.last_mut() {
            let Some(id) = visit.todo.pop() else {
                known[visit.rule] = Known::Done(visit.is_empty);
                path.pop();
                continue;
            };
            if visit.seen.contains(&id) {
                continue;
            }

            match network.node(id) {
                Node::Return => visit.is_empty = true,
                Node::Bytes(_) => {}
                Node::Either(next) => visit.todo.extend(next),
                Node::Call { rule, next } => match known[*rule] {
                    Known::Done(true) => visit.todo.push(*next),
                    Known::Done(false) => {}
                    Known::UnderWay => return Some(*rule),
                    Known::Nothing => {
                        // Visited again when the rule is done.
                        visit.todo.push(id);
                        known[*rule] = Known::UnderWay;
                        let inner = Visit::new(network, *rule);
                        path.push(inner);
                        continue;
                    }
                },
            }

            // Marked only now, because a call that was descended into is visited again.
            if let Some(visit) = path.last_mut() {
                visit.seen.insert(id);
            }
        }
    }
    None
}
