//! A doubly linked list of numbered nodes, possibly broken by wrong links.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::operation::OPERATIONS_MAX;
use crate::tasks::optional_index::OptionalIndex;

#[derive(Clone, Copy)]
pub struct Node {
    pub value: usize,
    pub prev: OptionalIndex,
    pub next: OptionalIndex,
}

/// All nodes by id, except removed ones.
#[derive(Clone)]
pub struct Nodes(Vec<Option<Node>>);

impl Nodes {
    fn iter(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.0.iter().enumerate().filter_map(|(id, node)| Some((id, node.as_ref()?)))
    }
}

impl Serialize for Nodes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for (id, node) in self.iter() {
            list.serialize_element(&(id, node.value, node.prev, node.next))?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Nodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut nodes = Vec::new();
        for (id, value, prev, next) in
            Vec::<(usize, usize, OptionalIndex, OptionalIndex)>::deserialize(deserializer)?
        {
            // A huge id would make a huge vector.
            if id < nodes.len() || id >= OPERATIONS_MAX {
                let reason = format!("ids of nodes ascend and are below {OPERATIONS_MAX}");
                return Err(serde::de::Error::custom(reason));
            }
            nodes.resize(id, None);
            nodes.push(Some(Node { value, prev, next }));
        }
        Ok(Self(nodes))
    }
}

/// A doubly linked list. `NONE` stands for the border around its nodes: the head comes after it,
/// the tail before it.
#[derive(Clone, Serialize)]
pub struct LinkedList {
    pub nodes: Nodes,
    pub head: OptionalIndex,
    pub tail: OptionalIndex,
}

impl LinkedList {
    pub fn new() -> Self {
        Self { nodes: Nodes(Vec::new()), head: OptionalIndex::NONE, tail: OptionalIndex::NONE }
    }

    /// Returns whether the nodes have ids below a bound.
    pub fn has_ids_below(&self, end: usize) -> bool {
        self.nodes.0.len() <= end
    }

    pub fn count(&self) -> usize {
        self.nodes.iter().count()
    }

    pub fn node(&self, id: usize) -> Option<&Node> {
        self.nodes.0.get(id)?.as_ref()
    }

    fn node_mut(&mut self, id: usize) -> Option<&mut Node> {
        self.nodes.0.get_mut(id)?.as_mut()
    }

    /// The node after this one; the head for `NONE`.
    pub fn next(&self, at: OptionalIndex) -> OptionalIndex {
        at.get().map_or(self.head, |id| self.node(id).map_or(OptionalIndex::NONE, |node| node.next))
    }

    /// The node before this one; the tail for `NONE`.
    pub fn prev(&self, at: OptionalIndex) -> OptionalIndex {
        at.get().map_or(self.tail, |id| self.node(id).map_or(OptionalIndex::NONE, |node| node.prev))
    }

    fn set_next(&mut self, at: OptionalIndex, next: OptionalIndex) {
        match at.get() {
            None => self.head = next,
            Some(id) => self.node_mut(id).into_iter().for_each(|node| node.next = next),
        }
    }

    fn set_prev(&mut self, at: OptionalIndex, prev: OptionalIndex) {
        match at.get() {
            None => self.tail = prev,
            Some(id) => self.node_mut(id).into_iter().for_each(|node| node.prev = prev),
        }
    }

    /// Returns whether a link leads to a node of the list, or nowhere.
    pub fn knows(&self, link: OptionalIndex) -> bool {
        link.get().is_none_or(|id| self.node(id).is_some())
    }

    /// Inserts a node that is new or was removed.
    pub fn link(&mut self, id: usize, node: Node) {
        if self.nodes.0.len() <= id {
            self.nodes.0.resize(id + 1, None);
        }
        self.nodes.0[id] = Some(node);
        self.set_next(node.prev, OptionalIndex::some(id));
        self.set_prev(node.next, OptionalIndex::some(id));
    }

    /// Removes a node and links `prev` to `next`, whether or not they are its neighbours.
    pub fn unlink(&mut self, id: usize, prev: OptionalIndex, next: OptionalIndex) {
        self.set_next(prev, next);
        self.set_prev(next, prev);
        self.nodes.0[id] = None;
    }

    /// Returns whether all next and prev links agree.
    pub fn is_symmetric(&self) -> bool {
        let nodes = self.nodes.iter().all(|(id, node)| {
            let next = node.next.get().is_none_or(|next| {
                self.node(next).is_some_and(|next| next.prev == OptionalIndex::some(id))
            });
            let prev = node.prev.get().is_none_or(|prev| {
                self.node(prev).is_some_and(|prev| prev.next == OptionalIndex::some(id))
            });
            next && prev
        });

        let head = self.head.get().is_none_or(|head| {
            self.node(head).is_some_and(|node| node.prev == OptionalIndex::NONE)
        });
        let tail = self.tail.get().is_none_or(|tail| {
            self.node(tail).is_some_and(|node| node.next == OptionalIndex::NONE)
        });

        nodes && head && tail
    }

    /// Returns whether following next from the head visits every node once and ends at the tail.
    pub fn is_one_path(&self) -> bool {
        let count = self.count();
        let (mut at, mut end, mut met) = (self.head, OptionalIndex::NONE, 0);
        while let Some(id) = at.get() {
            // The link leads to no node, or in a loop: there were more steps than nodes.
            let Some(node) = self.node(id).filter(|_| met < count) else { return false };
            met += 1;
            (end, at) = (at, node.next);
        }
        met == count && end == self.tail
    }

    /// Ids and values of the nodes that `step` leads to, beginning with `from`. The walk is no
    /// longer than the list, so that it ends even in a loop.
    pub fn walk(
        &self,
        from: OptionalIndex,
        step: impl Fn(&Node) -> OptionalIndex,
    ) -> Vec<(usize, usize)> {
        let nodes = std::iter::successors(from.get(), |id| step(self.node(*id)?).get());
        nodes.map_while(|id| Some((id, self.node(id)?.value))).take(self.count()).collect()
    }
}
