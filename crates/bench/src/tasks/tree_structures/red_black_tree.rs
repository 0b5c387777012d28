//! A red-black tree whose nodes are named by their keys. Lines only hang new leaves into it, rotate
//! and recolour, so that it is always a binary tree; the order of keys and the colours may be
//! wrong.

use std::collections::BTreeMap;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A side of a node, as an index of its children.
pub const LEFT: usize = 0;
/// The other side of a node.
pub const RIGHT: usize = 1;

/// A node of the tree.
#[derive(Clone, Copy)]
pub struct Node {
    /// Key, by which lines name the node; unique in the tree.
    pub key: usize,
    /// True for a red node, false for a black one.
    pub red: bool,
    /// Places of the children in the list of nodes.
    pub children: [Option<usize>; 2],
}

impl Node {
    /// The colour as answers have it: `R` or `B`.
    pub fn colour(&self) -> &'static str {
        if self.red { "R" } else { "B" }
    }
}

/// The nodes in the order inserted, and the place of the root.
#[derive(Clone)]
pub struct Tree {
    /// The nodes in order of insertion.
    pub nodes: Vec<Node>,
    /// Place of the root in that list; none in an empty tree.
    pub root: Option<usize>,
}

impl Tree {
    /// Returns whether a client's nodes are a binary tree that hangs on this place, or none.
    pub fn is_whole_below(&self, root: Option<usize>) -> bool {
        let mut met = vec![false; self.nodes.len()];
        let mut stack: Vec<usize> = root.into_iter().collect();

        while let Some(place) = stack.pop() {
            // A node that is met again has two parents or lies on a cycle.
            if std::mem::replace(&mut met[place], true) {
                return false;
            }
            stack.extend(self.nodes[place].children.into_iter().flatten());
        }

        met.into_iter().all(|met| met)
    }

    /// The place of the node with this key.
    pub fn find(&self, key: usize) -> Option<usize> {
        self.nodes.iter().position(|node| node.key == key)
    }

    /// The parent of a node, with the side on which the node is.
    pub fn parent(&self, of: usize) -> Option<(usize, usize)> {
        self.nodes.iter().enumerate().find_map(|(place, node)| {
            let side = node.children.iter().position(|child| *child == Some(of))?;
            Some((place, side))
        })
    }

    /// Returns whether the node at a place is red; a missing one is black.
    pub fn is_red(&self, place: Option<usize>) -> bool {
        place.is_some_and(|place| self.nodes[place].red)
    }

    /// Appends a red leaf and returns its place; it is not linked yet.
    pub fn leaf(&mut self, key: usize) -> usize {
        self.nodes.push(Node { key, red: true, children: [None; 2] });
        self.nodes.len() - 1
    }

    /// Rotates at a node towards a side; its child on the other side, which must be there, goes up.
    pub fn rotate(&mut self, at: usize, side: usize) {
        // Looked up before the links change.
        let above = self.parent(at);
        let up = self.nodes[at].children[1 - side]
            .expect("invariant: callers see that this child is there");

        self.nodes[at].children[1 - side] = self.nodes[up].children[side];
        self.nodes[up].children[side] = Some(at);

        match above {
            Some((parent, place)) => self.nodes[parent].children[place] = Some(up),
            None => self.root = Some(up),
        }
    }

    /// The node and side where the search for a key that is not there ends; `None` in an empty
    /// tree.
    pub fn gap(&self, key: usize) -> Option<(usize, usize)> {
        let mut at = self.root?;
        loop {
            let node = &self.nodes[at];
            let side = usize::from(key > node.key);
            match node.children[side] {
                Some(child) => at = child,
                None => return Some((at, side)),
            }
        }
    }

    /// The places of the nodes, in the order of a left-root-right walk.
    pub fn inorder(&self) -> Vec<usize> {
        let (mut order, mut stack) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        let mut next = self.root;
        loop {
            while let Some(place) = next {
                stack.push(place);
                next = self.nodes[place].children[LEFT];
            }
            let Some(place) = stack.pop() else { return order };
            order.push(place);
            next = self.nodes[place].children[RIGHT];
        }
    }

    /// The places of the nodes, in the order of a root-left-right walk.
    pub fn preorder(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut stack: Vec<_> = self.root.into_iter().collect();
        while let Some(place) = stack.pop() {
            order.push(place);
            let [left, right] = self.nodes[place].children;
            // The left child is put last, to be taken first.
            stack.extend(right.into_iter().chain(left));
        }
        order
    }

    /// Black nodes on every path from the root to a missing child; `None` if the paths differ.
    pub fn black_height(&self) -> Option<usize> {
        let mut height = None;
        let mut stack = vec![(self.root, 0)];

        while let Some((place, above)) = stack.pop() {
            match place {
                Some(place) => {
                    let node = &self.nodes[place];
                    stack
                        .extend(node.children.map(|child| (child, above + usize::from(!node.red))));
                }

                // The first path sets the height that all others must have.
                None if *height.get_or_insert(above) != above => return None,
                None => {}
            }
        }

        height
    }

    /// The red nodes whose parent is red.
    pub fn red_children_of_red(&self) -> impl Iterator<Item = usize> {
        let parents = self.nodes.iter().filter(|node| node.red);
        parents.flat_map(|node| node.children).flatten().filter(|child| self.nodes[*child].red)
    }
}

/// The state field `nodes`: key, colour, key of the left and of the right child.
impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.nodes.len()))?;
        for node in &self.nodes {
            let [left, right] = node.children.map(|child| child.map(|place| self.nodes[place].key));
            list.serialize_element(&(node.key, node.colour(), left, right))?;
        }
        list.end()
    }
}

/// Reads the nodes; another field of the state names the root.
impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type Entry = (usize, String, Option<usize>, Option<usize>);
        let entries: Vec<Entry> = Vec::deserialize(deserializer)?;
        // Children are given by their keys, and linked by their places.
        let places: BTreeMap<usize, usize> =
            entries.iter().map(|(key, ..)| *key).zip(0..).collect();
        let refuse = |reason: &str| Err(serde::de::Error::custom(reason));

        if places.len() != entries.len() {
            return refuse("must not hold a key twice");
        }

        let mut nodes = Vec::with_capacity(entries.len());
        for (key, colour, left, right) in entries {
            let red = match colour.as_str() {
                "R" => true,
                "B" => false,
                _ => return refuse("a colour is \"R\" or \"B\""),
            };

            if [left, right].into_iter().flatten().any(|child| !places.contains_key(&child)) {
                return refuse("children must be keys of nodes");
            }

            let children =
                [left, right].map(|child| child.and_then(|child| places.get(&child).copied()));
            nodes.push(Node { key, red, children });
        }

        Ok(Self { nodes, root: None })
    }
}
