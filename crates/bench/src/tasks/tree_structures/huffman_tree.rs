//! Huffman Tree: merge the two lightest trees until one is left, then read the codes off it.
//!
//! A step is one action line: `merge x y`, then `code i s` for each symbol, then `done`. Many codes
//! are right where trees weigh the same: an answer counts if it passes the goal test.

use std::collections::VecDeque;

use crate::tasks::pages::huffman_tree as page;
use crate::tasks::prelude::*;

/// The task `huffman-tree`.
pub struct HuffmanTree;

const SYMBOLS_MAX: usize = 1_000;
const FREQUENCY_MAX: u64 = 1_000_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Frequency of each symbol, at least 1.
    pub freq: Vec<u64>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Weight of each node: the symbols first, then the merged nodes, in order of merging.
    pub weight: Vec<u64>,
    /// Roots of the trees that are left, in ascending order of their numbers.
    pub alive: Vec<usize>,
    /// The pairs of nodes merged, in order; the 0 child is first.
    pub merges: Vec<[usize; 2]>,
    /// Code of each symbol so far, a string of 0 and 1.
    pub codes: Vec<String>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Merges the trees of two nodes; x becomes the 0 child, y the 1 child.
        Merge(x: usize, y: usize) = "merge <nat> <nat>", "merge {x} {y}";
        /// Names the code of symbol i.
        Code(i: usize, code: String) = "code <nat> <[01]+>", "code {i} {code}";
        /// Ends the trace.
        Done = "done", "done";
    }
}

impl State {
    /// Returns whether these are two different living nodes.
    fn are_alive(&self, x: usize, y: usize) -> bool {
        x != y && [x, y].iter().all(|node| self.alive.binary_search(node).is_ok())
    }

    /// Joins two living nodes.
    fn merge(&mut self, x: usize, y: usize) {
        self.alive.retain(|node| ![x, y].contains(node));
        // The new node has the highest number, so the list stays ascending.
        self.alive.push(self.weight.len());
        self.weight.push(self.weight[x] + self.weight[y]);
        self.merges.push([x, y]);
    }

    /// Returns whether no other living node weighs less than one of these two.
    fn are_lightest(&self, x: usize, y: usize) -> bool {
        let heavier = self.weight[x].max(self.weight[y]);
        let mut others = self.alive.iter().filter(|node| ![x, y].contains(node));
        others.all(|node| self.weight[*node] >= heavier)
    }
}

/// An answer, as [`Task::answer`] writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    merges: Vec<[usize; 2]>,
    codes: Vec<String>,
    lengths: Vec<usize>,
    cost: u64,
}

impl Code {
    /// Returns whether this is a Huffman code: each merge joins two of the lightest trees,
    /// whichever of several that weigh the same and in whichever order, and codes, lengths and cost
    /// are those of the last tree.
    fn is_right(&self, instance: &Instance) -> bool {
        let n = instance.freq.len();
        if [self.merges.len() + 1, self.codes.len(), self.lengths.len()] != [n; 3] {
            return false;
        }

        let mut state = HuffmanTree::start(instance);
        for [x, y] in &self.merges {
            if !state.are_alive(*x, *y) || !state.are_lightest(*x, *y) {
                return false;
            }
            state.merge(*x, *y);
        }

        let read_off = (0..n).map(|symbol| code_of(n, &self.merges, symbol));
        let lengths = self.codes.iter().map(String::len);
        read_off.eq(self.codes.iter().cloned())
            && lengths.eq(self.lengths.iter().copied())
            && self.cost == cost(&instance.freq, &self.lengths)
    }
}

/// The two living nodes of least weight, the lesser number first where they weigh the same.
fn lightest(state: &State) -> Option<Action> {
    let rank = |node: &usize| (state.weight[*node], *node);
    let x = *state.alive.iter().min_by_key(|node| rank(node))?;
    let y = *state.alive.iter().filter(|node| **node != x).min_by_key(|node| rank(node))?;
    Some(Action::Merge(x, y))
}

/// The bits from the root down to a node: merges come in the order of the nodes that they make.
fn code_of(n: usize, merges: &[[usize; 2]], symbol: usize) -> String {
    let mut node = symbol;
    let mut bits = Vec::new();

    for (place, pair) in merges.iter().enumerate() {
        if let Some(bit) = pair.iter().position(|child| *child == node) {
            bits.push(if bit == 0 { '0' } else { '1' });
            node = n + place;
        }
    }

    bits.into_iter().rev().collect()
}

fn is_prefix_free(codes: &[String]) -> bool {
    let mut sorted: Vec<_> = codes.iter().collect();
    sorted.sort_unstable();
    // A prefix sorts directly before a word that it begins, or before another such word.
    sorted.windows(2).all(|pair| !pair[1].starts_with(pair[0].as_str()))
}

/// Returns whether the sum of 2^-length is 1.
fn is_complete(codes: &[String]) -> bool {
    let mut lengths: Vec<_> = codes.iter().map(String::len).collect();

    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let (mut level, mut count) = (lengths.first().copied().unwrap_or(0), 0usize);
    // The sum so far is count·2^-level; from level to level up it must stay whole, as all terms to
    // come are.
    for length in lengths.into_iter().chain([0]) {
        while level > length {
            if count % 2 == 1 {
                return false;
            }
            count /= 2;
            level = if count == 0 { length } else { level - 1 };
        }
        count += usize::from(length > 0);
    }

    count == 1
}

/// Returns whether a text with these frequencies takes as many digits as the weights of the merged
/// nodes sum to, as with every code read off the tree, and no prefix code takes fewer.
fn has_cost_of_tree(instance: &Instance, state: &State) -> bool {
    let digits = instance
        .freq
        .iter()
        .zip(&state.codes)
        .map(|(count, code)| u128::from(*count) * code.len() as u128);

    let merged = state.weight.iter().skip(instance.freq.len()).map(|weight| u128::from(*weight));
    let digits = digits.sum::<u128>();
    digits == merged.sum() && digits == least_cost(&instance.freq)
}

/// The least number of digits of any prefix code, from the sorted frequencies and a queue of sums:
/// no tree is made.
fn least_cost(freq: &[u64]) -> u128 {
    let mut leaves: VecDeque<_> = freq.iter().map(|frequency| u128::from(*frequency)).collect();
    leaves.make_contiguous().sort_unstable();

    // Sums come in ascending order, so that the least of all is at the front of one queue.
    let mut sums: VecDeque<u128> = VecDeque::new();
    let mut cost = 0;

    for _ in 1..freq.len() {
        let mut sum = 0;
        for _ in 0..2 {
            let of_leaves =
                leaves.front().is_some_and(|leaf| sums.front().is_none_or(|least| leaf <= least));
            sum += if of_leaves { leaves.pop_front() } else { sums.pop_front() }.unwrap_or(0);
        }

        cost += sum;
        sums.push_back(sum);
    }

    cost
}

/// The digits of a text with these frequencies.
fn cost(freq: &[u64], lengths: &[usize]) -> u64 {
    // After wrong lines a code can be of any length.
    let terms = freq
        .iter()
        .zip(lengths)
        .map(|(frequency, length)| frequency.saturating_mul(*length as u64));
    terms.fold(0, u64::saturating_add)
}

fn living(state: &State) -> bool {
    let mut alive = vec![true; state.weight.len()];
    state.merges.iter().flatten().for_each(|node| alive[*node] = false);
    state.alive.iter().copied().eq((0..alive.len()).filter(|node| alive[*node]))
}

impl Task for HuffmanTree {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let freq: Vec<_> = (0..n).map(|_| 1 + rng.below(1000)).collect();
            if freq.iter().any(|frequency| *frequency != freq[0]) {
                return Instance { freq };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.freq.len();
        let range = format!("has {n} symbols; give 2 to {SYMBOLS_MAX}");
        InvalidInput::unless((2..=SYMBOLS_MAX).contains(&n), "freq", range)?;
        let bounded = instance.freq.iter().all(|frequency| (1..=FREQUENCY_MAX).contains(frequency));
        InvalidInput::unless(bounded, "freq", format!("frequencies are 1 to {FREQUENCY_MAX}"))
    }

    fn start(instance: &Instance) -> State {
        let alive = (0..instance.freq.len()).collect();
        State {
            weight: instance.freq.clone(),
            alive,
            merges: Vec::new(),
            codes: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.freq.len();
        limits::at_most("merges", state.merges.len(), n - 1)?;
        limits::length("weight", state.weight.len(), n + state.merges.len())?;
        limits::counts("weight", state.weight.iter().copied())?;

        let earlier =
            |(place, pair): (usize, &[usize; 2])| pair.iter().all(|node| *node < n + place);
        let merges = state.merges.iter().enumerate().all(earlier);
        InvalidInput::unless(merges, "merges", "must be pairs of nodes that were there before")?;

        limits::length("alive", state.alive.len(), n - state.merges.len())?;
        InvalidInput::unless(
            living(state),
            "alive",
            "must be the nodes that are not merged, ascending",
        )?;

        limits::at_most("codes", state.codes.len(), n)?;
        state.codes.iter().try_for_each(|code| limits::letters("codes", code, "01"))
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match action {
            Action::Merge(x, y) => {
                if !state.are_alive(*x, *y) {
                    return Err(Illegal("two different living nodes are merged"));
                }
                state.merge(*x, *y);
            }
            Action::Code(i, _) if *i >= instance.freq.len() => {
                return Err(Illegal("there is no such symbol"));
            }
            Action::Code(i, _) if *i != state.codes.len() => {
                return Err(Illegal("symbols get their codes in order"));
            }
            Action::Code(_, code) => state.codes.push(code.clone()),
            Action::Done => {}
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let (n, next) = (instance.freq.len(), state.codes.len());
        match state.last.0 {
            Some(Action::Done) => None,
            _ if state.merges.len() + 1 < n => lightest(state),
            _ if next < n => Some(Action::Code(next, code_of(n, &state.merges, next))),
            _ => Some(Action::Done),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `lightest` holds for every merge and `read-off` for
        // every code, and the goal test asks no more.
        let n = instance.freq.len();
        let sum: u64 = after.alive.iter().map(|node| after.weight[*node]).sum();
        found.require(page::WEIGHT_SUM, sum == instance.freq.iter().sum::<u64>());

        found.require(page::ALIVE, living(after));
        found.require(page::INCREASING, after.weight[n..].is_sorted());

        if let Action::Merge(x, y) = *action {
            found.require(page::LIGHTEST, before.are_lightest(x, y));
        }
        if let Action::Code(i, code) = action {
            found.require(page::READ_OFF, *code == code_of(n, &before.merges, *i));
        }

        let prefix_free = is_prefix_free(&after.codes);
        found.require(page::PREFIX_FREE, prefix_free);

        let one_tree = after.alive.len() == 1;
        found.require(page::ONE_TREE, after.codes.is_empty() || one_tree);

        if *action == Action::Done {
            let complete = after.codes.len() == n && prefix_free && is_complete(&after.codes);
            found.require(page::OPTIMAL, complete && one_tree && has_cost_of_tree(instance, after));
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // n-1 merges, n codes, `done`.
        2 * instance.freq.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let lengths: Vec<_> = state.codes.iter().map(String::len).collect();
        let cost = cost(&instance.freq, &lengths);
        json!({ "merges": state.merges, "codes": state.codes, "lengths": lengths, "cost": cost })
    }

    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        Some(Code::deserialize(answer).is_ok_and(|code| code.is_right(instance)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_huffman_code_is_right_and_no_other_code_is() {
        // After the first merge three nodes of weight 3 live.
        let instance = Instance { freq: vec![1, 2, 3, 3] };
        let is_right = |merges: Value, codes: &[&str], cost: u64| {
            let lengths: Vec<_> = codes.iter().map(|code| code.len()).collect();
            let answer =
                json!({ "merges": merges, "codes": codes, "lengths": lengths, "cost": cost });
            HuffmanTree::goal(&instance, &answer).expect("there is a goal test")
        };

        for (merges, codes) in [
            (json!([[0, 1], [2, 3], [4, 5]]), ["00", "01", "10", "11"]),
            (json!([[1, 0], [3, 2], [5, 4]]), ["11", "10", "01", "00"]),
            (json!([[0, 1], [2, 4], [3, 5]]), ["110", "111", "10", "0"]),
        ] {
            assert!(is_right(merges, &codes, 18), "{codes:?}");
        }

        let (balanced, skewed) = (["00", "01", "10", "11"], ["110", "111", "10", "0"]);
        for (merges, codes, cost) in [
            // As short, but 2 weighs more than 1, which lives.
            (json!([[0, 2], [1, 3], [4, 5]]), ["00", "10", "01", "11"], 18),
            // Codes of another tree, and of this one with another cost.
            (json!([[0, 1], [2, 3], [4, 5]]), skewed, 18),
            (json!([[0, 1], [2, 3], [4, 5]]), balanced, 17),
            // A node that is merged already, the same one twice, one that is not there.
            (json!([[0, 1], [0, 3], [4, 5]]), balanced, 18),
            (json!([[0, 0], [2, 3], [4, 5]]), balanced, 18),
            (json!([[0, 1], [2, 9], [4, 5]]), balanced, 18),
            // A merge too few.
            (json!([[0, 1], [2, 3]]), balanced, 18),
        ] {
            assert!(!is_right(merges.clone(), &codes, cost), "{merges} {codes:?} {cost}");
        }
        assert!(!is_right(json!([[0, 1], [2, 3], [4, 5]]), &balanced[..3], 18), "a code too few");
    }
}
