//! Binary trees as two lists of links, left and right: the common part of the search trees.

use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::task::InvalidInput;

/// The largest tree that a user may give.
const NODES_MAX: usize = 2_000;

/// A look at the links. After wrong lines they may form no tree: nodes can have two parents, or lie
/// on a cycle.
#[derive(Clone, Copy)]
pub struct BinaryTree<'a> {
    pub left: &'a [OptionalIndex],
    pub right: &'a [OptionalIndex],
}

impl BinaryTree<'_> {
    /// The nodes from `root` down in symmetric order; `None` if the walk meets a node twice.
    pub fn inorder(self, root: Option<usize>) -> Option<Vec<usize>> {
        let mut seen = vec![false; self.left.len()];
        let (mut order, mut stack) = (Vec::new(), Vec::new());
        let mut next = root;

        loop {
            while let Some(node) = next {
                if std::mem::replace(&mut seen[node], true) {
                    return None;
                }
                stack.push(node);
                next = self.left[node].get();
            }
            let Some(node) = stack.pop() else { return Some(order) };
            order.push(node);
            next = self.right[node].get();
        }
    }

    /// Height in nodes from `root` down. Where the links form no tree, a node counts on the highest
    /// level only.
    pub fn height(self, root: Option<usize>) -> usize {
        let mut seen = vec![false; self.left.len()];
        let mut level: Vec<_> = root.into_iter().collect();
        let mut height = 0;

        while !level.is_empty() {
            height += 1;
            level.iter().for_each(|node| seen[*node] = true);

            let children =
                level.iter().flat_map(|node| [self.left[*node].get(), self.right[*node].get()]);
            level = children
                .flatten()
                .filter(|node| !std::mem::replace(&mut seen[*node], true))
                .collect();
        }

        height
    }
}

/// Left and right links of the search tree that grows when the keys are inserted one after another:
/// node i holds `keys[i]`.
pub fn grown(keys: &[i64]) -> [Vec<OptionalIndex>; 2] {
    let mut links = [vec![OptionalIndex::NONE; keys.len()], vec![OptionalIndex::NONE; keys.len()]];
    for k in 1..keys.len() {
        let mut at = 0;
        loop {
            let link = &mut links[usize::from(keys[k] > keys[at])][at];
            match link.get() {
                Some(child) => at = child,
                None => break *link = OptionalIndex::some(k),
            }
        }
    }
    links
}

/// Returns whether the tree of these keys is a path: as high as it has nodes.
pub fn is_path(keys: &[i64]) -> bool {
    let [left, right] = grown(keys);
    BinaryTree { left: &left, right: &right }.height(Some(0)) == keys.len()
}

/// Checks the keys that a user gives.
///
/// # Errors
/// Says what is wrong with this field.
pub fn validate_keys(field: &'static str, keys: &[i64]) -> Result<(), InvalidInput> {
    let n = keys.len();
    InvalidInput::unless(
        (1..=NODES_MAX).contains(&n),
        field,
        format!("has {n} keys; give 1 to {NODES_MAX}"),
    )?;

    let bounded = keys.iter().all(|key| key.unsigned_abs() < NUMBER_LIMIT);
    InvalidInput::unless(bounded, field, "every key must lie between -2^53 and 2^53")?;

    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    InvalidInput::unless(sorted.is_sorted_by(|a, b| a < b), field, "must not hold a key twice")
}
