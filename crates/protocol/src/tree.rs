//! The tree of a tree search: a node for each state that was reached, how simulations through it
//! ended, and which of its arms UCB1 plays. It knows lines and returns, not trajectories.

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::rejection::Rejection;
use super::score::Score;

/// The bounds of a node's proposals and the weight of exploration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arms {
    /// Most successors.
    pub width: usize,
    /// Most proposals.
    pub attempts_max: u32,
    pub exploration: f64,
}

/// A state, with the step that led to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Node {
    pub parent: Option<usize>,
    pub line: Box<str>,
    pub score: Score,
    pub basis: Basis,
    pub depth: usize,
    /// A hash of the state.
    pub key: u64,
    /// Σ of 1 / (1 + V) over the steps to it, in thousandths.
    pub credit: u64,
    pub children: Vec<usize>,
    /// Lines that were rejected here.
    pub rejected: Vec<Rejection>,
    /// Accepted lines that lead to no new node: to a state that is in the tree, or to an end.
    pub closed_lines: Vec<Box<str>>,
    /// Simulations that came through it, those in flight included.
    visits: u32,
    /// Σ of their returns. One in flight counts 0: a virtual loss, which sends others elsewhere.
    returns: u64,
    /// Proposals made here, and those in flight.
    pub proposals: u32,
    pub pending: u32,
    /// The executor has no line left.
    is_spent: bool,
    /// There is nothing left to try here or below.
    is_closed: bool,
}

impl Node {
    /// The state, of this hash, that a step leads to.
    pub fn reached(line: &str, (score, basis): (Score, Basis), key: u64, credit: u64) -> Self {
        Self { line: line.into(), score, basis, key, credit, ..Self::default() }
    }

    /// True if another proposal may be made here.
    fn is_expandable(&self, arms: Arms) -> bool {
        let tries = self.proposals + self.pending;
        let successors = self.children.len() + self.pending as usize;
        !self.is_spent && tries < arms.attempts_max && successors < arms.width
    }

    /// Counts a proposal that is back.
    pub fn answered(&mut self, exhausted: bool) {
        self.pending -= 1;
        self.proposals += 1;
        self.is_spent |= exhausted;
    }
}

/// The nodes; the first is the root, and each one comes after its parent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    /// Simulations that have ended.
    pub simulations: u64,
    /// The lowest and the highest return so far.
    range: Option<(u64, u64)>,
}

/// UCB1: a mean from 0 to 1, and the bonus of an arm that was played `plays` of `of` times.
fn ucb(mean: f64, exploration: f64, of: u32, plays: u32) -> f64 {
    mean + exploration * (f64::from(of.max(1)).ln() / f64::from(plays.max(1))).sqrt()
}

impl Tree {
    /// A tree of its root, which `pending` proposals are on their way to.
    pub fn new(key: u64, pending: u32) -> Self {
        let root = Node { key, pending, visits: pending, ..Node::default() };
        Self { nodes: vec![root], ..Self::default() }
    }

    /// A return between the lowest and the highest, from 0 to 1 (as in MuZero, since returns grow
    /// with the length of traces).
    #[expect(clippy::cast_precision_loss, reason = "thousandths of steps")]
    fn scaled(&self, value: f64) -> f64 {
        match self.range {
            Some((low, high)) if low < high => {
                ((value - low as f64) / (high - low) as f64).clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// The node below `from`, or itself, at which UCB1 proposes next. `None` where everything on
    /// the way is in flight.
    pub fn select(&self, from: usize, arms: Arms) -> Option<usize> {
        let mut at = from;
        loop {
            let node = &self.nodes[at];
            let best = self.best_child(node, arms);

            if node.is_expandable(arms) {
                let own = self.worth_of_another(node, arms);
                if best.is_none_or(|(_, value)| own > value) {
                    return Some(at);
                }
            }
            at = best?.0;
        }
    }

    /// Like [`Tree::select`], but the node may be closed.
    pub fn select_open(&self, from: usize, arms: Arms) -> Option<usize> {
        if self.nodes[from].is_closed { None } else { self.select(from, arms) }
    }

    /// The open successor of highest UCB1; the first of several.
    #[expect(clippy::cast_precision_loss, reason = "thousandths of steps")]
    fn best_child(&self, node: &Node, arms: Arms) -> Option<(usize, f64)> {
        let open = node.children.iter().rev().filter(|child| !self.nodes[**child].is_closed);
        let valued = open.map(|child| {
            let Node { visits, returns, .. } = self.nodes[*child];
            let mean = returns as f64 / f64::from(visits.max(1));
            (*child, ucb(self.scaled(mean), arms.exploration, node.visits, visits))
        });
        valued.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// UCB1 of another proposal at a node. It is taken to be worth what a rejected one is: the way
    /// there (first-play urgency).
    #[expect(clippy::cast_precision_loss, reason = "thousandths of steps")]
    fn worth_of_another(&self, node: &Node, arms: Arms) -> f64 {
        let children = u32::try_from(node.children.len()).unwrap_or(u32::MAX);
        let in_vain = node.proposals.saturating_sub(children) + node.pending;
        ucb(self.scaled(node.credit as f64), arms.exploration, node.visits, in_vain + 1)
    }

    /// Sends a simulation that is at `from` to a node below, where it proposes. It has been counted
    /// at `from` unless that is `None`, the start.
    pub fn visit(&mut self, from: Option<usize>, to: usize) {
        let mut at = Some(to);
        while let Some(index) = at.filter(|index| Some(*index) != from) {
            self.nodes[index].visits += 1;
            at = self.nodes[index].parent;
        }
        self.nodes[to].pending += 1;
    }

    /// Adds the state that a step leads to; the simulation that took it proposes there next.
    pub fn add(&mut self, parent: usize, step: Node) -> usize {
        let index = self.nodes.len();
        self.nodes[parent].children.push(index);
        let (depth, visits) = (self.nodes[parent].depth + 1, 1);
        self.nodes.push(Node { parent: Some(parent), depth, visits, pending: 1, ..step });
        index
    }

    /// Ends a simulation at a node with a return, and closes what has nothing left.
    pub fn end(&mut self, at: usize, value: u64, arms: Arms) {
        self.simulations += 1;
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));

        let mut next = Some(at);
        while let Some(index) = next {
            let node = &self.nodes[index];
            let is_closed = node.pending == 0
                && !node.is_expandable(arms)
                && node.children.iter().all(|child| self.nodes[*child].is_closed);

            let node = &mut self.nodes[index];
            node.returns += value;
            node.is_closed = is_closed;
            next = node.parent;
        }
    }

    /// The nodes from a node down to one below it, without the first.
    pub fn path(&self, above: usize, to: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = to;
        while at != above {
            path.push(at);
            at = self.nodes[at].parent.expect("invariant: the node lies above");
        }
        path.reverse();
        path
    }
}
