//! Timsort: find runs, lengthen short ones by insertion, merge neighbours on a stack, gallop after
//! seven wins in a row.
//!
//! A step is one action line: a run found, an insertion, a push, a merge begun, an element or a
//! gallop merged, the rest of a merge, `done`.

use super::merge::Merge;
use super::moves;
use crate::tasks::pages::timsort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `timsort`.
pub struct Timsort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// First cell after the runs on the stack.
    pub pos: usize,
    /// End of the run being made, exclusive; `pos` after a push.
    pub end: usize,
    /// Start and length.
    pub stack: Vec<[usize; 2]>,
    /// The merge in progress, if there is one.
    pub merge: Option<Merge>,
    /// Length to which shorter runs are extended, 32..=64 from 64 cells on; constant.
    pub minrun: usize,
    natural: Vec<usize>,
    runs: Vec<usize>,
    merges: Vec<[usize; 2]>,
    gallops: u64,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

words!(
    /// The order of a run as it is found.
    pub enum Order {
        /// Non-decreasing.
        Ascending = "asc",
        /// Strictly decreasing; the run is reversed when it is found.
        Descending = "desc",
    }
);

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// The run that begins at `pos` ends before this cell.
        Run(end: usize, order: Order) = "run <nat> <asc|desc>", "run {end} {order}";
        /// Moves `a[k]` to cell p, at or before k, and those between one up.
        Insert(k: usize, p: usize) = "insert <nat> <nat>", "insert {k} {p}";
        /// Pushes the run `a[pos..end)`.
        Push = "push", "push";
        /// Begins to merge runs t and t+1 of the stack, counted from the bottom, from 0.
        Merge(t: usize) = "merge <nat>", "merge {t}";
        /// Takes the next element of the left run.
        Left = "l", "l";
        /// Takes the next element of the right run.
        Right = "r", "r";
        /// Takes this many elements of the left run, 0 allowed.
        GallopLeft(count: usize) = "gl <nat>", "gl {count}";
        /// Takes this many elements of the right run, 0 allowed.
        GallopRight(count: usize) = "gr <nat>", "gr {count}";
        /// Takes what is left of one run and writes the merge back.
        Rest = "rest", "rest";
        /// Ends the trace.
        Done = "done", "done";
    }
}

fn minimum_run(n: usize) -> usize {
    let (mut m, mut odd) = (n, 0);
    while m >= 64 {
        odd |= m % 2;
        m /= 2;
    }
    m + odd
}

impl State {
    /// The run that begins at `pos`.
    fn run(&self) -> Action {
        let rest = &self.a[self.pos..];
        let descending = rest.len() > 1 && rest[1] < rest[0];
        let length =
            1 + rest.windows(2).take_while(|pair| (pair[1] < pair[0]) == descending).count();
        Action::Run(
            self.pos + length,
            if descending { Order::Descending } else { Order::Ascending },
        )
    }

    /// The lower of the two runs that must be merged now, by the rule COLLAPSE or because the array
    /// has been read.
    fn merge_due(&self) -> Option<usize> {
        let count = self.stack.len();
        if count < 2 {
            return None;
        }

        let length = |from_top: usize| self.stack[count - from_top][1];
        let (y, z) = (length(2), length(1));
        // COLLAPSE, with the runs named W, X, Y, Z up to the top.
        let collapse = y <= z
            || (count >= 3 && length(3) <= y + z)
            || (count >= 4 && length(4) <= length(3) + y);

        // Y merges with the shorter of its neighbours X and Z, on a tie with Z.
        let older = count >= 3 && length(3) < z;
        (collapse || self.pos == self.a.len()).then(|| if older { count - 3 } else { count - 2 })
    }

    fn tiles(&self) -> bool {
        let mut end = 0;
        self.stack.iter().all(|[start, length]| {
            let follows = *start == end;
            end = start + length;
            follows
        }) && end == self.pos
    }

    fn runs_are_long(&self) -> bool {
        let made = self.runs.len().saturating_sub(1);
        self.runs[..made].iter().all(|run| *run >= self.minrun)
            && self.runs.iter().zip(&self.natural).all(|(run, natural)| run >= natural)
    }

    /// Returns whether no run on the stack is too short for those above it.
    fn is_balanced(&self) -> bool {
        let lengths: Vec<usize> =
            self.stack.iter().rev().take(4).map(|[_, length]| *length).collect();

        lengths.windows(2).all(|top| top[1] > top[0])
            && lengths.windows(3).all(|top| top[2] > top[1].saturating_add(top[0]))
    }

    /// Returns whether the second run from the top is merged with the shorter of its neighbours,
    /// the top one if they are equal.
    fn is_with_shorter_neighbour(&self, t: usize) -> bool {
        let lengths: Vec<usize> =
            self.stack.iter().rev().take(3).map(|[_, length]| *length).collect();

        let above = self.stack.len().saturating_sub(t);
        // `t` names the lower run of the pair: two from the top for Y with Z, three for X with Y.
        match (above, lengths.as_slice()) {
            (2, [top, _, third]) => third >= top,
            (3, [top, _, third]) => third < top,
            (above, _) => above == 2,
        }
    }

    /// Returns whether the run found by the last line ends where the next element does not continue
    /// it.
    fn is_whole_run(&self, end: usize, order: Order) -> bool {
        let run = moves::part(&self.a, self.pos..end);
        // A descending run has been reversed.
        match (order, run, self.a.get(end)) {
            (_, [], _) => false,
            (Order::Ascending, [_], next) => next.is_none(),
            (Order::Ascending, [.., greatest], next) => {
                run.is_sorted() && next.is_none_or(|next| next < greatest)
            }
            (Order::Descending, [least, ..], next) => {
                run.len() > 1
                    && run.is_sorted_by(|x, y| x < y)
                    && next.is_none_or(|next| next >= least)
            }
        }
    }

    /// Carries out the actions between merges.
    fn apply_outside_merge(&mut self, action: Action) -> Result<(), Illegal> {
        if self.merge.is_some() {
            return Err(Illegal("a merge is in progress"));
        }

        match action {
            Action::Run(end, order) => {
                if end <= self.pos || end > self.a.len() {
                    return Err(Illegal("a run ends after pos, within the array"));
                }

                if order == Order::Descending {
                    self.a[self.pos..end].reverse();
                }
                self.natural.push(end - self.pos);
                self.end = end;
            }
            Action::Insert(k, p) => {
                if p < self.pos {
                    return Err(Illegal("the place belongs to a run on the stack"));
                }
                moves::insert(&mut self.a, k, p)?;
                self.end = k + 1;
            }
            Action::Push => {
                if self.pos >= self.end {
                    return Err(Illegal("there is no run to push"));
                }
                self.stack.push([self.pos, self.end - self.pos]);
                self.runs.push(self.end - self.pos);
                self.pos = self.end;
            }
            Action::Merge(t) => {
                let (Some([lo, left]), Some([_, right])) = (
                    self.stack.get(t).copied(),
                    t.checked_add(1).and_then(|next| self.stack.get(next).copied()),
                ) else {
                    return Err(Illegal("there are no such two runs on the stack"));
                };

                self.merge = Some(Merge::new(t, lo, lo + left, lo + left + right));
                self.merges.push([left, right]);
            }
            _ => return Err(Illegal("there is no merge in progress")),
        }

        Ok(())
    }

    fn apply_rest(&mut self) -> Result<(), Illegal> {
        let merge = self.merge.take().ok_or(Illegal("there is no merge in progress"))?;
        let at = merge.at;
        merge.finish(&mut self.a);
        let [_, right] = self.stack.remove(at + 1);
        self.stack[at][1] += right;
        Ok(())
    }
}

fn check_runs(before: &State, action: Action, after: &State, found: &mut Violations) {
    let n = after.a.len();
    if matches!(action, Action::Run(..) | Action::Merge(_) | Action::Done) {
        found.require(page::PUSHED, before.end == before.pos);
    }

    match action {
        Action::Run(end, order) => {
            found.require(page::WHOLE_RUN, after.is_whole_run(end, order));
            found.require(page::BALANCE, before.is_balanced());
        }
        Action::Insert(k, p) => {
            let due =
                k == before.end && before.pos < k && k < before.pos.saturating_add(before.minrun);
            found.require(
                page::INSERTED,
                due && moves::is_stable_insertion(&after.a, before.pos, k, p),
            );
        }
        Action::Push => {
            // A short run is lengthened to `minrun`, or to the end of the array if that comes
            // first.
            let least = before.minrun.min(n - before.pos);
            let natural = before.natural.last().copied().unwrap_or(0);
            found.require(page::RUN_LENGTH, after.runs.last() == Some(&natural.max(least)));
        }
        Action::Merge(t) => {
            found.require(page::MERGE_DUE, before.pos == n || !before.is_balanced());
            found.require(page::NEIGHBOURS, before.is_with_shorter_neighbour(t));
        }
        Action::Done => {
            let whole = after.stack.len() == 1 && after.pos == n && after.merge.is_none();
            found.require(page::ONE_RUN, whole);
        }
        _ => {}
    }
}

fn check_merge(before: &State, action: Action, after: &State, found: &mut Violations) {
    match (&before.merge, &after.merge) {
        (Some(merge), Some(merged)) => {
            found.require(page::BOTH_RUNS, !merge.is_complete());
            found.require(page::STABLE, merged.is_stable_after(action, &after.a));
            let whole = merged.has_galloped_far_enough(action, &after.a);
            found.require(page::GALLOP, merge.allows(action) && whole);
        }
        (Some(merge), None) => found.require(page::BOTH_RUNS, merge.is_complete()),
        _ => {}
    }
}

impl Task for Timsort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::unsorted(|| {
            let n = page::size::N.draw(difficulty, rng);
            let mut a = Vec::with_capacity(n);

            // Pieces that are sorted or from a narrow range: in uniform values runs and gallops
            // hardly occur.
            while a.len() < n {
                let length = rng.size(8, 64).min(n - a.len());
                let base = rng.between(-1000, 800);
                let mut piece = array::uniform(length, base, base + 200, rng);

                match rng.below(3) {
                    0 => piece.sort_unstable(),
                    1 => piece.sort_unstable_by(|x, y| y.cmp(x)),
                    _ => {}
                }
                a.append(&mut piece);
            }

            a
        })
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            pos: 0,
            end: 0,
            stack: Vec::new(),
            merge: None,
            minrun: minimum_run(input.a.len()),
            natural: Vec::new(),
            runs: Vec::new(),
            merges: Vec::new(),
            gallops: 0,
            comparisons: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::below("pos", [state.pos, state.end], n + 1)?;

        InvalidInput::unless(
            state.tiles(),
            "stack",
            "must be runs, one after the other, from 0 to `pos`",
        )?;

        InvalidInput::unless(
            state.minrun == minimum_run(n),
            "minrun",
            format!("must be {}", minimum_run(n)),
        )?;

        // After `run` and `insert` the reference pushes the cells from `pos` to `end`.
        let run = !matches!(state.last.0, Some(Action::Run(..) | Action::Insert(..)))
            || state.pos < state.end;
        InvalidInput::unless(run, "end", "must lie behind `pos` while there is a run to push")?;

        let merge = state.merge.as_ref().is_none_or(|merge| merge.fits(n, state.stack.len()));
        InvalidInput::unless(
            merge,
            "merge",
            "must be of two runs of the stack, with what is taken from them in `buf`",
        )?;

        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match (*action, &mut state.merge) {
            (Action::Done, _) => {}
            (Action::Rest, _) => state.apply_rest()?,
            (Action::Left | Action::Right, Some(merge)) => {
                merge.win(&state.a, *action == Action::Left)?;
                state.comparisons += 1;
            }
            (Action::GallopLeft(count) | Action::GallopRight(count), Some(merge)) => {
                merge.gallop(&state.a, matches!(action, Action::GallopLeft(_)), count)?;
                state.gallops += 1;
            }
            // Without a merge in progress this refuses the lines above as well.
            _ => state.apply_outside_merge(*action)?,
        }
        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        if let Some(merge) = &state.merge {
            return Some(merge.step(&state.a));
        }

        let n = state.a.len();
        Some(match state.last.0 {
            Some(Action::Run(..) | Action::Insert(..)) => {
                let k = state.end;
                if k < n.min(state.pos + state.minrun) {
                    Action::Insert(k, moves::insertion_place(&state.a, state.pos, k))
                } else {
                    Action::Push
                }
            }
            _ => match state.merge_due() {
                Some(t) => Action::Merge(t),
                None if state.pos < n => state.run(),
                None => Action::Done,
            },
        })
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::PERMUTATION, moves::keeps_values(&before.a, &after.a));

        let sorted = after
            .stack
            .iter()
            .all(|[start, length]| moves::part(&after.a, *start..start + length).is_sorted());
        found.require(page::RUNS, sorted);

        found.require(page::TILES, after.tiles());
        found.require(page::BUFFER, after.merge.as_ref().is_none_or(Merge::is_consistent));
        found.require(page::MINRUN, after.runs_are_long());

        check_runs(before, *action, after, found);
        check_merge(before, *action, after, found);

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Every run but the last has minrun cells or more, which bounds the number of runs. A merge
        // that leaves r other runs alone takes at most n - (r-1)·minrun cells: as many lines, and a
        // gallop after seven of them.
        let n = input.a.len();
        let minrun = minimum_run(n);
        let runs = (n - 1) / minrun + 1;
        let merged: usize = (0..runs - 1).map(|others| n - others.saturating_sub(1) * minrun).sum();

        // Insertions, runs and pushes, begins and rests of merges, elements, gallops, `done`.
        (n + 2 * runs + 2 * (runs - 1) + merged + merged / 7 + 1) as u64
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "minrun": state.minrun,
            "natural": state.natural,
            "runs": state.runs,
            "merges": state.merges,
            "gallops": state.gallops,
            "comparisons": state.comparisons,
        })
    }
}
