//! Red-Black Tree Insertion: insert keys one after another and restore the colours, with rotations
//! where needed (CLRS).
//!
//! A step is one action line: `root k`, `left k p` or `right k p` hangs the new red node,
//! `case1 z`, `case2 z` and `case3 z` are the fixup, `black r` colours the root, `done`.

use super::red_black_tree::{LEFT, RIGHT, Tree};
use crate::tasks::pages::red_black_insert as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `red-black-insert`.
pub struct RedBlackInsert;

const KEYS_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Distinct keys below 2^53, in order of insertion.
    pub keys: Vec<usize>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The nodes in order of insertion.
    pub nodes: Tree,
    /// Key of the root.
    pub root: Option<usize>,
    /// Key of the node that the fixup has reached; none before the first insertion.
    pub z: Option<usize>,
    /// For each insertion its fixup cases, each 1, 2 or 3, in order.
    pub cases: Vec<Vec<u8>>,
    /// Number of left rotations, then of right rotations.
    pub rotations: [u64; 2],
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `root k`: the new red node k becomes the root of the empty tree.
    Root(k) = "root",
    /// `left k p`: hangs the new red node k as the left child of p.
    Left(k, p) = "left",
    /// `right k p`: hangs the new red node k as the right child of p.
    Right(k, p) = "right",
    /// `case1 z`: recolours parent, uncle and grandparent of z; the grandparent is next.
    Case1(z) = "case1",
    /// `case2 z`: rotates the inner child z above its parent, which is next.
    Case2(z) = "case2",
    /// `case3 z`: recolours parent and grandparent of z and rotates at the grandparent.
    Case3(z) = "case3",
    /// `black r`: colours the root r black.
    Black(r) = "black",
    /// Ends the trace.
    Done = "done",
});

/// Places of z, its parent p and its grandparent g, and the side of g on which p is.
pub struct Family {
    /// Place of the parent.
    pub p: usize,
    /// Place of the grandparent.
    pub g: usize,
    /// Side of the grandparent on which the parent is: 0 for left, 1 for right.
    pub side: usize,
}

impl State {
    /// The family of z; `None` if there is no z, or it has no grandparent.
    pub fn family(&self) -> Option<Family> {
        let (p, _) = self.nodes.parent(self.nodes.find(self.z?)?)?;
        let (g, side) = self.nodes.parent(p)?;
        Some(Family { p, g, side })
    }

    fn key(&self, place: usize) -> usize {
        self.nodes.nodes[place].key
    }

    /// Hangs a new red node below p, or makes it the root.
    fn hang(&mut self, k: usize, below: Option<(usize, usize)>) -> Result<(), Illegal> {
        if self.nodes.find(k).is_some() {
            return Err(Illegal("the key is in the tree"));
        }

        if let Some((p, side)) = below {
            let parent =
                self.nodes.find(p).ok_or(Illegal("there is no such parent in the tree"))?;
            if self.nodes.nodes[parent].children[side].is_some() {
                return Err(Illegal("the parent has a child there"));
            }
            let leaf = self.nodes.leaf(k);
            self.nodes.nodes[parent].children[side] = Some(leaf);
        } else {
            if self.nodes.root.is_some() {
                return Err(Illegal("the tree has a root"));
            }
            self.nodes.root = Some(self.nodes.leaf(k));
        }

        self.z = Some(k);
        self.cases.push(Vec::new());
        Ok(())
    }

    fn fix(&mut self, case: u8, z: usize) -> Result<(), Illegal> {
        if self.z != Some(z) {
            return Err(Illegal("this is not the node z"));
        }
        let Family { p, g, side } = self.family().ok_or(Illegal("z has no grandparent"))?;

        match case {
            1 => {
                let uncle =
                    self.nodes.nodes[g].children[1 - side].ok_or(Illegal("z has no uncle"))?;
                self.nodes.nodes[p].red = false;
                self.nodes.nodes[uncle].red = false;
                self.nodes.nodes[g].red = true;
                self.z = Some(self.key(g));
            }
            2 => {
                if self.nodes.nodes[p].children[1 - side].is_none() {
                    return Err(Illegal("the parent has no child that could go up"));
                }
                self.z = Some(self.key(p));
                self.rotate(p, side);
            }
            _ => {
                self.nodes.nodes[p].red = false;
                self.nodes.nodes[g].red = true;
                self.rotate(g, 1 - side);
            }
        }

        self.cases.last_mut().expect("invariant: z came with an entry of cases").push(case);
        Ok(())
    }

    /// Returns whether z has a red parent and stands to it, to the grandparent and to the uncle as
    /// this case asks.
    fn needs(&self, case: u8) -> bool {
        let Some(Family { p, g, side }) = self.family() else { return false };
        let tree = &self.nodes;

        let is_inner = self.z.is_some_and(|z| {
            tree.nodes[p].children[1 - side].is_some_and(|child| self.key(child) == z)
        });
        let fits = match (tree.is_red(tree.nodes[g].children[1 - side]), is_inner) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        tree.nodes[p].red && case == fits
    }

    fn rotate(&mut self, at: usize, side: usize) {
        self.nodes.rotate(at, side);
        self.rotations[side] += 1;
    }
}

/// The next insertion, or the end.
fn insertion(instance: &Instance, state: &State) -> Option<Action> {
    let Some(k) = instance.keys.get(state.nodes.nodes.len()).copied() else {
        return Some(Action::Done);
    };
    if state.root.is_none() {
        return Some(Action::Root(k));
    }

    // After wrong lines the key can be there already, even off the path of its search.
    if state.nodes.find(k).is_some() {
        return None;
    }

    let (parent, side) = state.nodes.gap(k)?;
    let p = state.key(parent);
    Some(if side == LEFT { Action::Left(k, p) } else { Action::Right(k, p) })
}

fn counts_fit(state: &State) -> bool {
    let rotating = state.cases.iter().flatten().filter(|case| matches!(case, 2 | 3)).count();
    let once =
        state.cases.iter().all(|cases| cases.iter().filter(|case| **case == 3).nth(1).is_none());
    once && rotating as u64 == state.rotations.iter().sum::<u64>()
}

impl Task for RedBlackInsert {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let keys = array::distinct(n, 1, 999, rng);
            let keys = keys
                .into_iter()
                .map(|key| usize::try_from(key).expect("invariant: keys are positive"));
            let instance = Instance { keys: keys.collect() };

            if reference_end::<Self>(&instance, u64::MAX)
                .is_some_and(|(state, _)| state.rotations != [0, 0])
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.keys.len();
        InvalidInput::unless(
            (1..=KEYS_MAX).contains(&n),
            "keys",
            format!("has {n} keys; give 1 to {KEYS_MAX}"),
        )?;

        let bounded = instance.keys.iter().all(|key| (*key as u64) < NUMBER_LIMIT);
        InvalidInput::unless(bounded, "keys", "every key must be below 2^53")?;

        let mut sorted = instance.keys.clone();
        sorted.sort_unstable();
        InvalidInput::unless(sorted.is_sorted_by(|a, b| a < b), "keys", "must not hold a key twice")
    }

    fn start(_: &Instance) -> State {
        let nodes = Tree { nodes: Vec::new(), root: None };
        State { nodes, root: None, z: None, cases: Vec::new(), rotations: [0, 0], last: Last(None) }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        let tree = &state.nodes;
        limits::sayable("nodes", tree.nodes.iter().map(|node| node.key))?;

        let root = state.root.and_then(|root| tree.find(root));
        let whole = state.root.is_some() == root.is_some() && tree.is_whole_below(root);
        InvalidInput::unless(whole, "nodes", "must be one binary tree below `root`")?;
        limits::length("cases", state.cases.len(), tree.nodes.len())
    }

    fn complete(_: &Instance, state: &mut State) {
        state.nodes.root = state.root.and_then(|root| state.nodes.find(root));
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Root(k) => state.hang(k, None)?,
            Action::Left(k, p) => state.hang(k, Some((p, LEFT)))?,
            Action::Right(k, p) => state.hang(k, Some((p, RIGHT)))?,
            Action::Case1(z) => state.fix(1, z)?,
            Action::Case2(z) => state.fix(2, z)?,
            Action::Case3(z) => state.fix(3, z)?,
            Action::Black(r) => {
                let place =
                    state.nodes.find(r).ok_or(Illegal("there is no such node in the tree"))?;
                state.nodes.nodes[place].red = false;
            }
            Action::Done => {}
        }

        // A new node or a rotation can change the root.
        state.root = state.nodes.root.map(|root| state.key(root));
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        let tree = &state.nodes;
        let place = state.z.and_then(|z| tree.find(z));
        let parent = place.and_then(|place| tree.parent(place));

        let (Some(z), Some((p, inner))) = (state.z, parent.filter(|(p, _)| tree.nodes[*p].red))
        else {
            return match state.root {
                Some(root) if tree.is_red(tree.root) => Some(Action::Black(root)),
                _ => insertion(instance, state),
            };
        };

        // After wrong lines the root can be red and have a red child: the algorithm knows no
        // grandparent then.
        let (g, side) = tree.parent(p)?;

        Some(if tree.is_red(tree.nodes[g].children[1 - side]) {
            Action::Case1(z)
        } else if inner == side {
            Action::Case3(z)
        } else {
            Action::Case2(z)
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `nodes` gives the key of an insertion and `search-tree`
        // its place, `settled` allows it only into a tree without faults, and in a tree with a
        // fault `repair` allows one case, or `black`.
        let (tree, keys) = (&after.nodes, &instance.keys);
        found.require(
            page::SEARCH_TREE,
            tree.inorder().is_sorted_by(|a, b| after.key(*a) < after.key(*b)),
        );

        let height = tree.black_height();
        found.require(page::BLACK_HEIGHT, height.is_some());
        found.require(
            page::RED_RED,
            tree.red_children_of_red().all(|child| Some(after.key(child)) == after.z),
        );

        let inserted = tree.nodes.len() <= keys.len()
            && tree.nodes.iter().zip(keys).all(|(node, key)| node.key == *key);
        found.require(page::NODES, inserted && after.cases.len() == tree.nodes.len());
        found.require(page::COUNTS, counts_fit(after));

        match *action {
            Action::Root(_) | Action::Left(..) | Action::Right(..) => {
                let old = &before.nodes;
                let settled = !old.is_red(old.root) && old.red_children_of_red().next().is_none();
                found.require(page::SETTLED, settled);
            }
            Action::Case1(_) => found.require(page::REPAIR, before.needs(1)),
            Action::Case2(_) => found.require(page::REPAIR, before.needs(2)),
            Action::Case3(_) => found.require(page::REPAIR, before.needs(3)),
            Action::Black(r) => {
                let is_due = before.root == Some(r) && before.nodes.is_red(before.nodes.root);
                found.require(page::REPAIR, is_due);
            }
            Action::Done => {}
        }

        if *action == Action::Done {
            let all = keys.iter().all(|key| tree.find(*key).is_some());
            let alternate = tree.red_children_of_red().next().is_none();
            let black = tree.root.is_some() && !tree.is_red(tree.root);
            found.require(page::RED_BLACK, all && black && alternate && height.is_some());
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A path in a tree of n nodes has at most 2·log2(n+1) nodes, and case 1 goes up by two. An
        // insertion takes its own line, at most log2(n+1) times case 1, one case 2, one case 3 and
        // one `black`.
        let n = instance.keys.len() as u64;
        n * (4 + u64::from((n + 1).ilog2())) + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let tree = &state.nodes;
        let preorder = tree.preorder().into_iter().map(|place| &tree.nodes[place]);
        let preorder: Vec<_> = preorder.map(|node| (node.key, node.colour())).collect();
        // After wrong lines paths may differ: the one that keeps to the left counts.
        let leftmost = std::iter::successors(tree.root, |place| tree.nodes[*place].children[LEFT]);
        let black_height = leftmost.filter(|place| !tree.nodes[*place].red).count();
        let State { cases, rotations, .. } = state;
        json!({ "preorder": preorder, "cases": cases, "rotations": rotations, "black_height": black_height })
    }
}
