//! A grammar as a recursive transition network over bytes: one start node for each rule, and one
//! node where every rule ends.

use std::collections::HashMap;

use regex_syntax::utf8::{Utf8Range, Utf8Sequence};

use super::error::GrammarError;
use super::left_recursion;
use super::syntax::{Expression, Syntax};

pub(super) type NodeId = u32;

/// The node at which every rule ends.
pub(super) const RETURN: NodeId = 0;

/// Most nodes of a grammar, which bounds the expansion of repetitions.
const NODES_MAX: usize = 200_000;

/// A transition to `next` on the bytes from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Edge {
    pub(super) low: u8,
    pub(super) high: u8,
    pub(super) next: NodeId,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    /// The end of a rule: continue after its call.
    Return,
    /// Consumes a byte; the ranges may overlap.
    Bytes(Box<[Edge]>),
    /// Continues at each of these nodes.
    Either(Box<[NodeId]>),
    /// Runs a rule, and then continues at `next`.
    Call { rule: usize, next: NodeId },
}

#[derive(Debug)]
pub(super) struct Network {
    nodes: Vec<Node>,
    /// The start node of each rule.
    starts: Vec<NodeId>,
    root: usize,
}

impl Network {
    pub(super) fn new(syntax: &Syntax) -> Result<Self, GrammarError> {
        let mut builder = Builder { nodes: vec![Node::Return], known: HashMap::new() };
        let mut starts = Vec::with_capacity(syntax.rules.len());

        for rule in &syntax.rules {
            let start = builder.expression(&rule.body, RETURN);
            starts.push(start.ok_or_else(|| GrammarError::TooLarge {
                line: rule.line,
                rule: rule.name.clone(),
            })?);
        }

        let network = Self { nodes: builder.nodes, starts, root: syntax.root };
        match left_recursion::left_recursive(&network) {
            Some(place) => {
                let rule = &syntax.rules[place];
                Err(GrammarError::LeftRecursion { line: rule.line, rule: rule.name.clone() })
            }
            None => Ok(network),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn rules(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The start node of a rule.
    pub(super) fn start(&self, rule: usize) -> NodeId {
        self.starts[rule]
    }

    /// The start node of the grammar.
    pub(super) fn root(&self) -> NodeId {
        self.starts[self.root]
    }

    /// The edges of a node; none if it does not consume a byte.
    pub(super) fn edges(&self, id: NodeId) -> &[Edge] {
        match self.node(id) {
            Node::Bytes(edges) => edges,
            _ => &[],
        }
    }

    pub(super) fn all_edges(&self) -> impl Iterator<Item = &Edge> {
        self.nodes.iter().flat_map(|node| match node {
            Node::Bytes(edges) => &**edges,
            _ => &[],
        })
    }
}

/// Builds back to front, so that a node's successor exists before it. `None` means that the grammar
/// is too large.
struct Builder {
    nodes: Vec<Node>,
    /// Nodes by their edges: equal suffixes are shared.
    known: HashMap<Box<[Edge]>, NodeId>,
}

impl Builder {
    fn add(&mut self, node: Node) -> Option<NodeId> {
        let id =
            NodeId::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < NODES_MAX)?;
        self.nodes.push(node);
        Some(id)
    }

    fn bytes(&mut self, edges: Vec<Edge>) -> Option<NodeId> {
        let edges = edges.into_boxed_slice();
        if let Some(id) = self.known.get(&edges) {
            return Some(*id);
        }
        let id = self.add(Node::Bytes(edges.clone()))?;
        self.known.insert(edges, id);
        Some(id)
    }

    fn expression(&mut self, expression: &Expression, next: NodeId) -> Option<NodeId> {
        match expression {
            Expression::Text(text) => text.bytes().rev().try_fold(next, |next, byte| {
                self.bytes(vec![Edge { low: byte, high: byte, next }])
            }),
            Expression::Class(sequences) => {
                let sequences: Vec<&[Utf8Range]> =
                    sequences.iter().map(Utf8Sequence::as_slice).collect();
                self.class(&sequences, next)
            }
            Expression::Rule(rule) => self.add(Node::Call { rule: *rule, next }),
            Expression::Sequence(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.expression(part, next))
            }
            Expression::Either(parts) => {
                let starts: Option<_> =
                    parts.iter().map(|part| self.expression(part, next)).collect();
                self.add(Node::Either(starts?))
            }
            Expression::Repeat { what, min, max } => self.repeat(what, *min, *max, next),
        }
    }

    /// Adds the nodes of a class. Its sequences are sorted, so those with the same first range are
    /// adjacent.
    fn class(&mut self, sequences: &[&[Utf8Range]], next: NodeId) -> Option<NodeId> {
        let mut edges = Vec::new();
        for group in sequences.chunk_by(|a, b| a.first() == b.first()) {
            let Some(first) = group[0].first() else { continue };
            let tails: Vec<&[Utf8Range]> = group.iter().map(|sequence| &sequence[1..]).collect();
            let next = if tails[0].is_empty() { next } else { self.class(&tails, next)? };
            edges.push(Edge { low: first.start, high: first.end, next });
        }

        self.bytes(edges)
    }

    fn repeat(
        &mut self,
        what: &Expression,
        min: u32,
        max: Option<u32>,
        next: NodeId,
    ) -> Option<NodeId> {
        let mut start = next;
        let mut left = min;
        if let Some(max) = max {
            // Each optional repetition contains those after it.
            for _ in min..max {
                let one = self.expression(what, start)?;
                start = self.add(Node::Either([one, next].into()))?;
            }
        } else {
            // The head of the loop is needed before its body, which leads back to it.
            let again = self.add(Node::Either([].into()))?;
            let one = self.expression(what, again)?;
            self.nodes[again as usize] = Node::Either([one, next].into());

            start = if min == 0 { again } else { one };
            // The loop's own body is one of the mandatory repetitions.
            left = min.saturating_sub(1);
        }

        (0..left).try_fold(start, |start, _| self.expression(what, start))
    }
}
