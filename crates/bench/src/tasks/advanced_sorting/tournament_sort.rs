//! Tournament Sort: build a winner tree, take out the winner, and replay the matches on its path.
//!
//! A step is one match (or walkover), one element taken out, or `done`.

use crate::tasks::pages::tournament_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `tournament-sort`.
pub struct TournamentSort;

/// A place of the input, or -1 for nobody.
pub type Player = i64;

const NOBODY: Player = -1;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Winner of each node, -1 for none; the root first, and the last (len + 1) / 2 are leaves.
    pub tree: Vec<Player>,
    built: Vec<Player>,
    /// Places of the input in the order taken out.
    pub order: Vec<usize>,
    matches: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Records the winner of an inner node's children, -1 if neither is left.
        Play(node: usize, winner: Player) = "play <nat> <int>", "play {node} {winner}";
        /// Takes out the winner, a place of the input, whose leaf becomes -1.
        Out(winner: usize) = "out <nat>", "out {winner}";
        /// Ends the trace.
        Done = "done", "done";
    }
}

/// The input place of a player.
fn place(player: Player) -> Option<usize> {
    usize::try_from(player).ok()
}

fn player(place: usize) -> Player {
    Player::try_from(place).expect("invariant: inputs are short")
}

impl State {
    /// Inner nodes; the leaf of place i is node `inner + i`.
    fn inner(&self) -> usize {
        self.tree.len() / 2
    }

    fn children(&self, node: usize) -> (Player, Player) {
        (self.tree[2 * node + 1], self.tree[2 * node + 2])
    }

    fn play(&self, a: &[i64], node: usize) -> Action {
        let (left, right) = self.children(node);
        let winner = match (place(left), place(right)) {
            (Some(l), Some(r)) => {
                // On a tie the left player wins, whose place in the input is lower.
                if a[r] < a[l] { right } else { left }
            }
            (Some(_), None) => left,
            (None, _) => right,
        };

        Action::Play(node, winner)
    }

    fn is_leaf_right(&self, i: usize, n: usize, is_out: &[bool]) -> bool {
        let expected = if i < n && !is_out[i] { player(i) } else { NOBODY };
        self.tree[self.inner() + i] == expected
    }

    /// Returns whether the player at this node is the winner of its children: the one of lesser
    /// value, or the left one if the values are equal.
    fn holds_a_winner(&self, a: &[i64], node: usize) -> bool {
        let value = |player: Player| place(player).map(|i| a[i]);
        let (winner, left, right) =
            (self.tree[node], self.tree[2 * node + 1], self.tree[2 * node + 2]);

        // Nobody loses to everybody.
        let beats = |loser: Player, equal: bool| match (value(winner), value(loser)) {
            (Some(won), Some(lost)) => won < lost || equal && won == lost,
            (_, lost) => lost.is_none(),
        };

        winner == left && beats(right, true) || winner == right && beats(left, false)
    }

    /// Returns whether the player at this node, if any, comes from a leaf below it. With nodes
    /// counted from 1, the ancestors of leaf P + i are P + i without its last binary digits.
    fn is_winner_below(&self, node: usize) -> bool {
        let leaves = self.inner() + 1;
        let levels = leaves.ilog2() - (node + 1).ilog2();
        place(self.tree[node]).is_none_or(|winner| (leaves + winner) >> levels == node + 1)
    }
}

impl Task for TournamentSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let n = input.a.len();
        let leaves = n.next_power_of_two();

        let mut tree = vec![NOBODY; 2 * leaves - 1];
        for (leaf, i) in tree[leaves - 1..].iter_mut().zip(0..n) {
            *leaf = player(i);
        }

        State { tree, built: Vec::new(), order: Vec::new(), matches: 0, last: Last(None) }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::length("tree", state.tree.len(), 2 * n.next_power_of_two() - 1)?;
        limits::within("tree", state.tree.iter().copied(), NOBODY..=player(n) - 1)?;
        limits::below("order", state.order.iter().copied(), n)?;

        // The last action names the node from which `reference` continues.
        match state.last.0 {
            Some(Action::Play(node, _)) => limits::below("last", [node], state.inner()),
            Some(Action::Out(winner)) => limits::below("last", [winner], n),
            None | Some(Action::Done) => Ok(()),
        }
    }

    fn apply(input: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = input.a.len();
        match *action {
            Action::Play(node, winner) => {
                if node >= state.inner() {
                    return Err(Illegal("there is no such inner node"));
                }
                if winner < NOBODY || winner >= player(n) {
                    return Err(Illegal("the winner is a place of the input, or -1"));
                }

                let (left, right) = state.children(node);
                state.matches += u64::from(left != NOBODY && right != NOBODY);
                state.tree[node] = winner;
            }
            Action::Out(winner) => {
                if winner >= n {
                    return Err(Illegal("there is no such place in the input"));
                }

                let inner = state.inner();
                // The answer's `built` is the tree before any element is taken out.
                if state.built.is_empty() {
                    state.built = state.tree[..inner].to_vec();
                }
                state.order.push(winner);
                state.tree[inner + winner] = NOBODY;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(input: &Input, state: &State) -> Option<Action> {
        let inner = state.inner();
        let parent = |node: usize| (node - 1) / 2;
        match state.last.0 {
            None => Some(state.play(&input.a, inner - 1)),
            Some(Action::Play(0, _)) if state.order.len() >= input.a.len() => Some(Action::Done),
            Some(Action::Play(0, _)) => place(state.tree[0]).map(Action::Out),
            Some(Action::Play(node, _)) => {
                // The tree is built from its last inner node to the root; later matches follow the
                // path from a leaf.
                let next = if state.order.is_empty() { node - 1 } else { parent(node) };
                Some(state.play(&input.a, next))
            }
            Some(Action::Out(winner)) => Some(state.play(&input.a, parent(inner + winner))),
            Some(Action::Done) => None,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let a = &input.a;
        let mut is_out = vec![false; a.len()];
        let once = after.order.iter().all(|i| !std::mem::replace(&mut is_out[*i], true));
        let ascending = after.order.is_sorted_by_key(|i| a[*i]);

        // `all` stopped at a repeated entry: mark those after it too, since the leaves are checked
        // against the marks.
        if !once {
            after.order.iter().for_each(|i| is_out[*i] = true);
        }

        let inner = after.inner();
        found.require(page::LEAVES, (0..=inner).all(|i| after.is_leaf_right(i, a.len(), &is_out)));
        found.require(page::ORDER, once && ascending);
        found.require(page::BELOW, (0..inner).all(|node| after.is_winner_below(node)));
        found.require(page::COUNTS, after.matches <= (inner * (1 + after.order.len())) as u64);

        let last = before.last.0;
        match *action {
            Action::Play(node, _) => {
                found.require(page::WINNER, after.holds_a_winner(a, node));
                let is_above = |below: usize| below == 2 * node + 1 || below == 2 * node + 2;
                let follows = match last {
                    None => node + 1 == inner,
                    Some(Action::Play(below, _)) if after.order.is_empty() => below == node + 1,
                    Some(Action::Play(below, _)) => is_above(below),
                    Some(Action::Out(out)) => is_above(inner + out),
                    Some(Action::Done) => false,
                };
                found.require(page::PLAY_ORDER, follows);
            }
            Action::Out(out) => {
                found.require(page::CHAMPION, last == Some(Action::Play(0, player(out))));
            }
            Action::Done => {
                found.require(page::EMPTIED, after.tree.iter().all(|player| *player == NOBODY));
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.order.len() == a.len() && ascending);
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // P - 1 matches build the tree; each of n elements is taken out, and its path has log2 P
        // matches.
        let n = input.a.len();
        let leaves = n.next_power_of_two();
        leaves as u64 + n as u64 * u64::from(1 + leaves.ilog2())
    }

    fn answer(input: &Input, state: &State) -> Value {
        let sorted: Vec<_> = state.order.iter().map(|i| input.a[*i]).collect();
        json!({
            "sorted": sorted,
            "order": state.order,
            "built": state.built,
            "matches": state.matches,
        })
    }
}
