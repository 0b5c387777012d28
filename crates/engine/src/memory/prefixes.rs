//! A tree of token sequences: what each sequence of a context holds, with what several hold in common held once.
//!
//! A node is a run of tokens and the set of sequences that hold it; the runs from the root to a sequence's node are what
//! the sequence holds. The set is the node's reference count: a node that nobody holds is gone. In a shared KV pool every
//! token of the tree is one cell. Knows nothing of llama.cpp.

use super::Seq;

/// A token of a vocabulary.
pub(crate) type Token = i32;

/// A set of sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Holders([u64; 4]);

impl Holders {
    fn of(seq: Seq) -> Self {
        let mut all = Self::default();
        all.insert(seq);
        all
    }

    fn insert(&mut self, seq: Seq) {
        self.0[usize::from(seq.0 / 64)] |= 1 << (seq.0 % 64);
    }

    fn remove(&mut self, seq: Seq) {
        self.0[usize::from(seq.0 / 64)] &= !(1 << (seq.0 % 64));
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The sequences, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = Seq> {
        (0..=u8::MAX).map(Seq).filter(move |seq| self.0[usize::from(seq.0 / 64)] >> (seq.0 % 64) & 1 == 1)
    }
}

/// Place of a node in the tree's list.
type Place = usize;
/// The node without tokens from which all others hang.
const ROOT: Place = 0;

#[derive(Debug, Default)]
struct Node {
    tokens: Vec<Token>,
    parent: Place,
    children: Vec<Place>,
    holders: Holders,
}

/// The longest beginning of some tokens that is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Tokens of it.
    pub(super) length: usize,
    /// Who holds all of it.
    pub(super) holders: Holders,
}

/// What every sequence holds.
#[derive(Debug)]
pub(super) struct Prefixes {
    nodes: Vec<Node>,
    /// Places that are free.
    vacant: Vec<Place>,
    /// The node at which each sequence ends, and how many tokens it holds.
    ends: Vec<(Place, usize)>,
    /// Tokens of all nodes.
    tokens: usize,
}

/// Tokens at the beginning of both.
pub(crate) fn common(a: &[Token], b: &[Token]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Prefixes {
    /// Nothing, for sequences below `sequences`.
    pub(super) fn new(sequences: usize) -> Self {
        Self { nodes: vec![Node::default()], vacant: Vec::new(), ends: vec![(ROOT, 0); sequences], tokens: 0 }
    }

    /// Tokens that `seq` holds.
    pub(super) fn length(&self, seq: Seq) -> usize {
        self.ends[usize::from(seq.0)].1
    }

    /// Tokens of the tree, those that several sequences hold counted once.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Whether others hold everything that `seq` holds.
    pub(super) fn is_covered(&self, seq: Seq) -> bool {
        let (end, length) = self.ends[usize::from(seq.0)];
        length == 0 || self.nodes[end].holders.len() > 1
    }

    /// Tokens that no sequence holds that is wanted.
    pub(super) fn held_by_none(&self, is_wanted: impl Fn(Seq) -> bool) -> usize {
        let unwanted = |node: &&Node| !node.holders.is_empty() && !node.holders.iter().any(&is_wanted);
        self.nodes.iter().filter(unwanted).map(|node| node.tokens.len()).sum()
    }

    /// The longest beginning of `tokens` that a sequence holds.
    pub(super) fn find(&self, tokens: &[Token]) -> Found {
        self.find_below(ROOT, tokens).unwrap_or_default()
    }

    fn find_below(&self, place: Place, tokens: &[Token]) -> Option<Found> {
        let first = tokens.first()?;
        let children = self.nodes[place].children.iter().map(|child| (*child, &self.nodes[*child]));
        // More than one when sequences came to the same tokens on their own.
        let alike = children.filter(|(_, child)| child.tokens.first() == Some(first));
        let found = alike.map(|(at, child)| {
            let length = common(&child.tokens, tokens);
            let here = Found { length, holders: child.holders };
            if length < child.tokens.len() {
                return here;
            }
            self.find_below(at, &tokens[length..]).map_or(here, |rest| Found { length: length + rest.length, ..rest })
        });
        found.max_by_key(|found| found.length)
    }

    fn add(&mut self, node: Node) -> Place {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() - 1
        });
        self.nodes[place] = node;
        place
    }

    /// Divides a node after `at` of its tokens; returns the upper part. The lower one stays where it was.
    fn split(&mut self, place: Place, at: usize) -> Place {
        let node = &mut self.nodes[place];
        let rest = node.tokens.split_off(at);
        let upper = Node {
            tokens: std::mem::replace(&mut node.tokens, rest),
            parent: node.parent,
            children: vec![place],
            holders: node.holders,
        };
        let parent = node.parent;
        let upper = self.add(upper);
        self.nodes[place].parent = upper;
        for child in &mut self.nodes[parent].children {
            if *child == place {
                *child = upper;
            }
        }
        upper
    }

    /// The node of `seq` that ends after `length` tokens; one is divided if need be. `length` is at most what it holds.
    fn node_at(&mut self, seq: Seq, length: usize) -> Place {
        let (mut place, mut end) = self.ends[usize::from(seq.0)];
        loop {
            let start = end - self.nodes[place].tokens.len();
            if length == end {
                return place;
            }
            if length > start {
                return self.split(place, length - start);
            }
            (place, end) = (self.nodes[place].parent, start);
        }
    }

    /// `seq` holds `tokens` after what it holds.
    pub(super) fn extend(&mut self, seq: Seq, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        let (end, length) = self.ends[usize::from(seq.0)];
        self.tokens += tokens.len();
        let node = &mut self.nodes[end];
        let end = if end != ROOT && node.children.is_empty() && node.holders == Holders::of(seq) {
            node.tokens.extend_from_slice(tokens);
            end
        } else {
            let child = Node { tokens: tokens.to_vec(), parent: end, children: Vec::new(), holders: Holders::of(seq) };
            let child = self.add(child);
            self.nodes[end].children.push(child);
            child
        };
        self.ends[usize::from(seq.0)] = (end, length + tokens.len());
    }

    /// `to`, which holds nothing, holds the first `length` tokens of `from` together with it.
    pub(super) fn share(&mut self, from: Seq, to: Seq, length: usize) {
        debug_assert_eq!(self.length(to), 0, "{to:?} holds something");
        let end = self.node_at(from, length);
        let mut place = end;
        while place != ROOT {
            self.nodes[place].holders.insert(to);
            place = self.nodes[place].parent;
        }
        self.ends[usize::from(to.0)] = (end, length);
    }

    /// `seq` holds no more than its first `length` tokens.
    pub(super) fn cut(&mut self, seq: Seq, length: usize) {
        let (mut place, held) = self.ends[usize::from(seq.0)];
        if length >= held {
            return;
        }
        let last = self.node_at(seq, length);
        self.ends[usize::from(seq.0)] = (last, length);
        while place != last {
            let node = &mut self.nodes[place];
            node.holders.remove(seq);
            let (parent, is_gone) = (node.parent, node.holders.is_empty());
            if is_gone {
                self.tokens -= node.tokens.len();
                self.nodes[parent].children.retain(|child| *child != place);
                self.nodes[place] = Node::default();
                self.vacant.push(place);
            } else {
                self.join(place);
            }
            place = parent;
        }
        self.join(last);
    }

    /// Makes a node and its only child one, if the same sequences hold both.
    fn join(&mut self, place: Place) {
        let [child] = self.nodes[place].children[..] else { return };
        if place == ROOT || self.nodes[child].holders != self.nodes[place].holders {
            return;
        }
        let lower = std::mem::take(&mut self.nodes[child]);
        self.vacant.push(child);
        for grandchild in &lower.children {
            self.nodes[*grandchild].parent = place;
        }
        for seq in lower.holders.iter() {
            let end = &mut self.ends[usize::from(seq.0)].0;
            if *end == child {
                *end = place;
            }
        }
        let node = &mut self.nodes[place];
        node.tokens.extend(lower.tokens);
        node.children = lower.children;
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// What a sequence holds, read from the tree.
    fn held(tree: &Prefixes, seq: Seq) -> Vec<Token> {
        let (mut place, length) = tree.ends[usize::from(seq.0)];
        let mut parts = Vec::new();
        while place != ROOT {
            parts.push(tree.nodes[place].tokens.clone());
            place = tree.nodes[place].parent;
        }
        let tokens: Vec<Token> = parts.into_iter().rev().flatten().collect();
        assert_eq!(tokens.len(), length);
        tokens
    }

    #[test]
    fn what_is_shared_is_counted_once_and_outlives_its_first_holder() {
        let (a, b, c) = (Seq(0), Seq(1), Seq(200));
        let mut tree = Prefixes::new(256);
        tree.extend(a, &[1, 2, 3, 4]);
        tree.share(a, b, 3);
        tree.extend(b, &[9]);
        assert_eq!((tree.tokens(), held(&tree, b)), (5, vec![1, 2, 3, 9]));
        let found = tree.find(&[1, 2, 3, 9, 9]);
        assert_eq!((found.length, found.holders.iter().collect::<Vec<_>>()), (4, vec![b]));
        let found = tree.find(&[1, 2, 8]);
        assert_eq!((found.length, found.holders.iter().collect::<Vec<_>>()), (2, vec![a, b]));
        assert_eq!(tree.find(&[7]), Found::default());
        tree.cut(a, 0);
        assert_eq!((tree.tokens(), held(&tree, b)), (4, vec![1, 2, 3, 9]));
        // The pieces of what is left became one again.
        assert_eq!(tree.nodes[ROOT].children.len(), 1);
        assert!(tree.nodes[tree.nodes[ROOT].children[0]].children.is_empty());
        tree.share(b, c, 4);
        assert!(tree.is_covered(b) && tree.is_covered(c) && tree.is_covered(a));
        tree.extend(c, &[5]);
        assert!(tree.is_covered(b) && !tree.is_covered(c));
        assert_eq!(tree.held_by_none(|seq| seq == b), 1);
    }

    #[test]
    fn the_same_tokens_from_two_sides_are_two_runs() {
        let mut tree = Prefixes::new(4);
        tree.extend(Seq(0), &[1, 2]);
        tree.extend(Seq(1), &[1, 2, 3]);
        assert_eq!(tree.tokens(), 5);
        assert_eq!(tree.find(&[1, 2, 3, 4]).length, 3);
    }

    #[test]
    fn it_agrees_with_plain_lists_whatever_is_done() {
        const SEQUENCES: u8 = 6;
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut tree = Prefixes::new(usize::from(SEQUENCES));
            let mut lists: Vec<Vec<Token>> = vec![Vec::new(); usize::from(SEQUENCES)];
            for _ in 0..200 {
                let seq = Seq(rng.random_range(0..SEQUENCES));
                let list = &mut lists[usize::from(seq.0)];
                match rng.random_range(0..4) {
                    0 | 1 => {
                        let tokens: Vec<Token> = (0..rng.random_range(0..4)).map(|_| rng.random_range(0..3)).collect();
                        tree.extend(seq, &tokens);
                        list.extend(tokens);
                    }
                    2 => {
                        let length = rng.random_range(0..=list.len());
                        tree.cut(seq, length);
                        list.truncate(length);
                    }
                    _ => {
                        let from = Seq(rng.random_range(0..SEQUENCES));
                        if from != seq {
                            tree.cut(seq, 0);
                            let length = rng.random_range(0..=lists[usize::from(from.0)].len());
                            tree.share(from, seq, length);
                            lists[usize::from(seq.0)] = lists[usize::from(from.0)][..length].to_vec();
                        }
                    }
                }
                for (seq, list) in (0..SEQUENCES).map(Seq).zip(&lists) {
                    assert_eq!((&held(&tree, seq), tree.length(seq)), (list, list.len()), "seed {seed}");
                }
                let wanted: Vec<Token> = (0..6).map(|_| rng.random_range(0..3)).collect();
                let longest = lists.iter().map(|list| common(list, &wanted)).max();
                let found = tree.find(&wanted);
                assert_eq!(Some(found.length), longest, "seed {seed}");
                for holder in found.holders.iter() {
                    assert_eq!(common(&lists[usize::from(holder.0)], &wanted), found.length, "seed {seed}");
                }
            }
            // Every node is held, and no two that could be one are left.
            (0..SEQUENCES).map(Seq).for_each(|seq| tree.cut(seq, 0));
            assert_eq!((tree.tokens(), tree.nodes[ROOT].children.len()), (0, 0), "seed {seed}");
            assert_eq!(tree.vacant.len() + 1, tree.nodes.len(), "seed {seed}");
        }
    }
}
