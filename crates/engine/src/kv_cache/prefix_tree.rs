//! A radix tree of the token sequences that a context holds; sequences with a common prefix share
//! its nodes.
//!
//! A node is a run of tokens with the set of sequences that hold it, which serves as its reference
//! count. The runs from the root to a sequence's node are its tokens. In a shared KV pool every
//! token of the tree is one cell. Knows nothing of llama.cpp.

use super::SeqId;

/// A token of a vocabulary.
pub(crate) type Token = i32;

/// A set of sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Holders([u64; 4]);

impl Holders {
    pub(super) fn of(seq: SeqId) -> Self {
        let mut all = Self::default();
        all.insert(seq);
        all
    }

    fn insert(&mut self, seq: SeqId) {
        self.0[usize::from(seq.0 / 64)] |= 1 << (seq.0 % 64);
    }

    fn remove(&mut self, seq: SeqId) {
        self.0[usize::from(seq.0 / 64)] &= !(1 << (seq.0 % 64));
    }

    /// The members that satisfy a condition.
    pub(super) fn filtered(mut self, is_kept: impl Fn(SeqId) -> bool) -> Self {
        self.iter().filter(|seq| !is_kept(*seq)).for_each(|seq| self.remove(seq));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The sequences in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = SeqId> {
        (0..=u8::MAX)
            .map(SeqId)
            .filter(move |seq| self.0[usize::from(seq.0 / 64)] >> (seq.0 % 64) & 1 == 1)
    }
}

/// Index of a node.
type NodeId = usize;
/// The root has no tokens.
const ROOT: NodeId = 0;

#[derive(Debug, Default)]
struct Node {
    tokens: Vec<Token>,
    parent: NodeId,
    children: Vec<NodeId>,
    holders: Holders,
}

/// The longest held prefix of some tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Match {
    /// Its length in tokens.
    pub(super) length: usize,
    /// The sequences that hold all of it.
    pub(super) holders: Holders,
}

#[derive(Debug)]
pub(super) struct PrefixTree {
    nodes: Vec<Node>,
    /// Unused indices.
    vacant: Vec<NodeId>,
    /// The last node of each sequence, and the sequence's length in tokens.
    ends: Vec<(NodeId, usize)>,
    /// Tokens of all nodes.
    tokens: usize,
}

/// Length of the common prefix.
pub(crate) fn common_prefix(a: &[Token], b: &[Token]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl PrefixTree {
    /// An empty tree for the sequences below `sequences`.
    pub(super) fn new(sequences: usize) -> Self {
        Self {
            nodes: vec![Node::default()],
            vacant: Vec::new(),
            ends: vec![(ROOT, 0); sequences],
            tokens: 0,
        }
    }

    /// Length of `seq` in tokens.
    pub(super) fn length(&self, seq: SeqId) -> usize {
        self.ends[usize::from(seq.0)].1
    }

    /// Returns whether all tokens of `seq` are the first ones of `tokens`.
    pub(super) fn is_prefix(&self, seq: SeqId, tokens: &[Token]) -> bool {
        let (mut id, mut end) = self.ends[usize::from(seq.0)];
        if end > tokens.len() {
            return false;
        }
        while id != ROOT {
            let node = &self.nodes[id];
            let start = end - node.tokens.len();
            if tokens[start..end] != node.tokens[..] {
                return false;
            }
            (id, end) = (node.parent, start);
        }
        true
    }

    /// Tokens of the tree; shared ones count once.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns whether another sequence holds all tokens of `seq`.
    pub(super) fn is_covered(&self, seq: SeqId) -> bool {
        let (end, length) = self.ends[usize::from(seq.0)];
        length == 0 || self.nodes[end].holders.len() > 1
    }

    /// Number of tokens that no wanted sequence holds.
    pub(super) fn tokens_held_only_by_others(&self, is_wanted: impl Fn(SeqId) -> bool) -> usize {
        let unwanted =
            |node: &&Node| !node.holders.is_empty() && !node.holders.iter().any(&is_wanted);
        self.nodes.iter().filter(unwanted).map(|node| node.tokens.len()).sum()
    }

    /// The longest prefix of `tokens` that a sequence holds, of those that satisfy a condition. All
    /// sequences that share tokens must agree in it.
    pub(super) fn find(&self, tokens: &[Token], is_asked: impl Fn(SeqId) -> bool) -> Match {
        self.find_below(ROOT, tokens, &is_asked).unwrap_or_default()
    }

    fn find_below(
        &self,
        id: NodeId,
        tokens: &[Token],
        is_asked: &impl Fn(SeqId) -> bool,
    ) -> Option<Match> {
        let first = tokens.first()?;
        let children = self.nodes[id].children.iter().map(|child| (*child, &self.nodes[*child]));
        // There can be several, from sequences that computed the same tokens independently.
        let alike = children.filter(|(_, child)| {
            child.tokens.first() == Some(first) && child.holders.iter().next().is_some_and(is_asked)
        });

        let found = alike.map(|(at, child)| {
            let length = common_prefix(&child.tokens, tokens);
            let here = Match { length, holders: child.holders };
            if length < child.tokens.len() {
                return here;
            }
            self.find_below(at, &tokens[length..], is_asked)
                .map_or(here, |rest| Match { length: length + rest.length, ..rest })
        });

        found.max_by_key(|found| found.length)
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() - 1
        });
        self.nodes[id] = node;
        id
    }

    /// Splits a node after `at` of its tokens and returns the upper part. The lower part keeps its
    /// index.
    fn split(&mut self, id: NodeId, at: usize) -> NodeId {
        let node = &mut self.nodes[id];
        let rest = node.tokens.split_off(at);
        let upper = Node {
            tokens: std::mem::replace(&mut node.tokens, rest),
            parent: node.parent,
            children: vec![id],
            holders: node.holders,
        };

        let parent = node.parent;
        let upper = self.add(upper);
        self.nodes[id].parent = upper;
        for child in &mut self.nodes[parent].children {
            if *child == id {
                *child = upper;
            }
        }
        upper
    }

    /// The node of `seq` that ends after `length` tokens, which is split off if necessary. `length`
    /// is at most the sequence's.
    fn node_at(&mut self, seq: SeqId, length: usize) -> NodeId {
        let (mut id, mut end) = self.ends[usize::from(seq.0)];
        loop {
            let start = end - self.nodes[id].tokens.len();
            if length == end {
                return id;
            }
            if length > start {
                return self.split(id, length - start);
            }
            (id, end) = (self.nodes[id].parent, start);
        }
    }

    /// Appends `tokens` to `seq`.
    pub(super) fn extend(&mut self, seq: SeqId, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let (end, length) = self.ends[usize::from(seq.0)];
        self.tokens += tokens.len();

        let node = &mut self.nodes[end];
        // Only a leaf of the sequence's own may grow in place.
        let end = if end != ROOT && node.children.is_empty() && node.holders == Holders::of(seq) {
            node.tokens.extend_from_slice(tokens);
            end
        } else {
            let child = Node {
                tokens: tokens.to_vec(),
                parent: end,
                children: Vec::new(),
                holders: Holders::of(seq),
            };
            let child = self.add(child);
            self.nodes[end].children.push(child);
            child
        };

        self.ends[usize::from(seq.0)] = (end, length + tokens.len());
    }

    /// Gives `to`, which is empty, the first `length` tokens of `from`.
    pub(super) fn share(&mut self, from: SeqId, to: SeqId, length: usize) {
        debug_assert_eq!(self.length(to), 0, "{to:?} is not empty");

        let end = self.node_at(from, length);
        let mut id = end;
        while id != ROOT {
            self.nodes[id].holders.insert(to);
            id = self.nodes[id].parent;
        }
        self.ends[usize::from(to.0)] = (end, length);
    }

    /// Truncates `seq` to its first `length` tokens.
    pub(super) fn truncate(&mut self, seq: SeqId, length: usize) {
        let (mut id, held) = self.ends[usize::from(seq.0)];
        if length >= held {
            return;
        }

        // A split leaves the lower part its index, so `id` still is the last node afterwards.
        let last = self.node_at(seq, length);
        self.ends[usize::from(seq.0)] = (last, length);

        while id != last {
            let node = &mut self.nodes[id];
            node.holders.remove(seq);
            let (parent, is_unused) = (node.parent, node.holders.is_empty());
            if is_unused {
                self.tokens -= node.tokens.len();
                self.nodes[parent].children.retain(|child| *child != id);
                self.nodes[id] = Node::default();
                self.vacant.push(id);
            } else {
                self.merge(id);
            }
            id = parent;
        }

        self.merge(last);
    }

    /// Merges a node with its only child, if the same sequences hold both.
    fn merge(&mut self, id: NodeId) {
        let [child] = self.nodes[id].children[..] else { return };
        if id == ROOT || self.nodes[child].holders != self.nodes[id].holders {
            return;
        }

        let lower = std::mem::take(&mut self.nodes[child]);
        self.vacant.push(child);

        for grandchild in &lower.children {
            self.nodes[*grandchild].parent = id;
        }

        // Sequences that ended at the child now end here.
        for seq in lower.holders.iter() {
            let end = &mut self.ends[usize::from(seq.0)].0;
            if *end == child {
                *end = id;
            }
        }

        let node = &mut self.nodes[id];
        node.tokens.extend(lower.tokens);
        node.children = lower.children;
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The tokens of a sequence, read from the tree.
    fn held(tree: &PrefixTree, seq: SeqId) -> Vec<Token> {
        let (mut id, length) = tree.ends[usize::from(seq.0)];
        let mut parts = Vec::new();
        while id != ROOT {
            parts.push(tree.nodes[id].tokens.clone());
            id = tree.nodes[id].parent;
        }
        let tokens: Vec<Token> = parts.into_iter().rev().flatten().collect();
        assert_eq!(tokens.len(), length);
        tokens
    }

    #[test]
    fn shared_tokens_count_once_and_outlive_their_first_holder() {
        let (a, b, c) = (SeqId(0), SeqId(1), SeqId(200));
        let mut tree = PrefixTree::new(256);
        tree.extend(a, &[1, 2, 3, 4]);
        tree.share(a, b, 3);
        tree.extend(b, &[9]);

        assert_eq!((tree.tokens(), held(&tree, b)), (5, vec![1, 2, 3, 9]));

        let found = tree.find(&[1, 2, 3, 9, 9], |_| true);
        assert_eq!((found.length, found.holders.iter().collect::<Vec<_>>()), (4, vec![b]));
        let found = tree.find(&[1, 2, 8], |_| true);
        assert_eq!((found.length, found.holders.iter().collect::<Vec<_>>()), (2, vec![a, b]));

        assert_eq!(tree.find(&[7], |_| true), Match::default());

        tree.truncate(a, 0);
        assert_eq!((tree.tokens(), held(&tree, b)), (4, vec![1, 2, 3, 9]));
        // The remaining nodes were merged.
        assert_eq!(tree.nodes[ROOT].children.len(), 1);
        assert!(tree.nodes[tree.nodes[ROOT].children[0]].children.is_empty());

        tree.share(b, c, 4);
        assert!(tree.is_covered(b) && tree.is_covered(c) && tree.is_covered(a));
        tree.extend(c, &[5]);
        assert!(tree.is_covered(b) && !tree.is_covered(c));
        assert_eq!(tree.tokens_held_only_by_others(|seq| seq == b), 1);
    }

    #[test]
    fn the_same_tokens_computed_twice_are_two_runs() {
        let mut tree = PrefixTree::new(4);
        tree.extend(SeqId(0), &[1, 2]);
        tree.extend(SeqId(1), &[1, 2, 3]);
        assert_eq!(tree.tokens(), 5);
        assert_eq!(tree.find(&[1, 2, 3, 4], |_| true).length, 3);
    }

    #[test]
    fn the_tree_agrees_with_plain_lists_under_random_operations() {
        const SEQUENCES: u8 = 6;
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut tree = PrefixTree::new(usize::from(SEQUENCES));
            let mut lists: Vec<Vec<Token>> = vec![Vec::new(); usize::from(SEQUENCES)];
            for _ in 0..200 {
                let seq = SeqId(rng.random_range(0..SEQUENCES));
                let list = &mut lists[usize::from(seq.0)];
                match rng.random_range(0..4) {
                    0 | 1 => {
                        let tokens: Vec<Token> =
                            (0..rng.random_range(0..4)).map(|_| rng.random_range(0..3)).collect();
                        tree.extend(seq, &tokens);
                        list.extend(tokens);
                    }
                    2 => {
                        let length = rng.random_range(0..=list.len());
                        tree.truncate(seq, length);
                        list.truncate(length);
                    }
                    _ => {
                        let from = SeqId(rng.random_range(0..SEQUENCES));
                        if from != seq {
                            tree.truncate(seq, 0);
                            let length = rng.random_range(0..=lists[usize::from(from.0)].len());
                            tree.share(from, seq, length);
                            lists[usize::from(seq.0)] =
                                lists[usize::from(from.0)][..length].to_vec();
                        }
                    }
                }

                for (seq, list) in (0..SEQUENCES).map(SeqId).zip(&lists) {
                    assert_eq!(
                        (&held(&tree, seq), tree.length(seq)),
                        (list, list.len()),
                        "seed {seed}"
                    );
                }

                let wanted: Vec<Token> = (0..6).map(|_| rng.random_range(0..3)).collect();
                let longest = lists.iter().map(|list| common_prefix(list, &wanted)).max();
                let found = tree.find(&wanted, |_| true);
                assert_eq!(Some(found.length), longest, "seed {seed}");
                for holder in found.holders.iter() {
                    assert_eq!(
                        common_prefix(&lists[usize::from(holder.0)], &wanted),
                        found.length,
                        "seed {seed}"
                    );
                }
            }
            // No node is left.
            (0..SEQUENCES).map(SeqId).for_each(|seq| tree.truncate(seq, 0));
            assert_eq!((tree.tokens(), tree.nodes[ROOT].children.len()), (0, 0), "seed {seed}");
            assert_eq!(tree.vacant.len() + 1, tree.nodes.len(), "seed {seed}");
        }
    }
}
