//! Sorting networks on a power of two of cells: stages of comparators that do not depend on the
//! values.
//!
//! A step is one action line: a stage begun, a comparison, an exchange, `done`.

use std::marker::PhantomData;

use super::moves;
use crate::tasks::page::Sizes;
use crate::tasks::prelude::*;
use crate::tasks::sorting::Input;

/// The two numbers of a `stage` line.
pub type Stage = [usize; 2];

/// Indices of the constraints that all networks have.
pub struct Constraints {
    /// The array is a permutation of the input.
    pub permutation: usize,
    /// The stage is one of the network's.
    pub stage: usize,
    /// The stages follow one another in the network's order.
    pub stage_order: usize,
    /// The two cells of a line are as far apart as the stage demands.
    pub distance: usize,
    /// The comparators of a stage follow one another in ascending order.
    pub comparator_order: usize,
    /// A swap follows the comparison of the same two cells.
    pub compared: usize,
    /// A swap exchanges values that were in the wrong order.
    pub swap_order: usize,
    /// A comparator is left only with its values in order.
    pub settled: usize,
    /// The blocks that a stage begins to merge are sorted.
    pub blocks: usize,
    /// The counts of swaps and comparisons agree with one another.
    pub counts: usize,
    /// The finished trace has all comparisons of the network.
    pub all_comparators: usize,
    /// The finished array is sorted.
    pub sorted: usize,
}

/// The parts in which networks differ.
pub trait Network: Send + Sync + 'static {
    /// The constant part of the task.
    const PAGE: Spec;
    /// The sizes of instances.
    const N: Sizes;
    /// The places of the constraints on the task's page.
    const CONSTRAINTS: Constraints;
    /// The first stage of the network.
    const FIRST: Stage;

    /// Returns whether the network of `n` cells has this stage.
    fn has(n: usize, stage: Stage) -> bool;

    /// The stage after this one of the network.
    fn next(n: usize, stage: Stage) -> Option<Stage>;

    /// The upper cell of the comparator of this stage whose lower one is `i`, if there is one.
    fn partner(n: usize, stage: Stage, i: usize) -> Option<usize>;

    /// Returns whether the comparator at cell `i` puts the greater value there.
    fn is_descending(stage: Stage, i: usize) -> bool;

    /// Returns whether two cells are as far apart as those of a comparator of the stage.
    fn is_distance(stage: Stage, i: usize, j: usize) -> bool;

    /// Returns whether the blocks that the stage is about to merge are sorted.
    fn are_blocks_sorted(a: &[i64], stage: Stage) -> bool;

    /// The number of this stage, counted from 1, in the network of `n` cells.
    fn stage_number(n: usize, stage: Stage) -> Option<usize>;

    /// Comparators of the stages before this one of the network.
    fn comparators_before(n: usize, stage: Stage) -> usize;

    /// Comparators of this stage with a lower cell before the one at cell `i`.
    fn comparator_rank(stage: Stage, i: usize) -> usize;

    /// Returns whether the values of the comparator at cell `i` are as the stage leaves them.
    fn is_settled(stage: Stage, i: usize, lower: i64, upper: i64) -> bool;

    /// Comparators of the network of 2^m cells.
    fn comparators(m: u64) -> u64;
}

/// The task of sorting with a network.
pub struct NetworkSort<N>(PhantomData<fn() -> N>);

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// The pair of the last `stage` line; none before it.
    pub stage: Option<Stage>,
    stage_swaps: Vec<u64>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `stage k j`: begins a stage of the network.
    Stage(k, j) = "stage",
    /// `cmp i j`: compares `a[i]` with `a[j]`.
    Cmp(i, j) = "cmp",
    /// `swap i j`: exchanges `a[i]` and `a[j]`.
    Swap(i, j) = "swap",
    /// Ends the trace.
    Done = "done",
});

/// The first comparator at or after cell `i`, or what follows the stage.
fn comparator<N: Network>(n: usize, stage: Stage, i: usize) -> Action {
    let next = (i..n).find_map(|i| Some(Action::Cmp(i, N::partner(n, stage, i)?)));
    next.unwrap_or_else(|| match N::next(n, stage) {
        Some([k, j]) => Action::Stage(k, j),
        None => Action::Done,
    })
}

impl State {
    /// Returns whether cells i and j hold what the stage leaves there.
    fn is_settled<N: Network>(&self, i: usize, j: usize) -> bool {
        let (Some(stage), Some(lower), Some(upper)) = (self.stage, self.a.get(i), self.a.get(j))
        else {
            // Without a stage the line breaks `distance` anyway.
            return true;
        };
        N::is_settled(stage, i, *lower, *upper)
    }

    /// Comparisons made when the stage has reached cell `i`: all those before it.
    fn comparisons_until<N: Network>(&self, i: usize) -> Option<u64> {
        let n = self.a.len();
        let stage = self.stage.filter(|stage| N::stage_number(n, *stage).is_some())?;
        Some((N::comparators_before(n, stage) + N::comparator_rank(stage, i)) as u64)
    }
}

/// Checks stages and comparisons against the network's schedule, which does not depend on values.
fn check_schedule<N: Network>(
    before: &State,
    action: Action,
    after: &State,
    found: &mut Violations,
) {
    let constraints = N::CONSTRAINTS;
    let n = after.a.len();
    let number = after.stage.and_then(|stage| N::stage_number(n, stage));
    found.require(constraints.stage, after.stage.is_none() || number.is_some());

    match action {
        Action::Stage(..) => {
            found.require(constraints.stage_order, number == Some(after.stage_swaps.len()));
            // A stage begins when all comparators of the earlier ones have been compared.
            found.require(
                constraints.comparator_order,
                after.comparisons_until::<N>(0) == Some(after.comparisons),
            );
        }
        Action::Cmp(i, _) => {
            // `after` already counts this comparison.
            let made = after.comparisons.checked_sub(1);
            found.require(
                constraints.comparator_order,
                made.is_some() && after.comparisons_until::<N>(i) == made,
            );
        }
        Action::Swap(i, j) => {
            found.require(constraints.compared, before.last.0 == Some(Action::Cmp(i, j)));
        }
        Action::Done => {
            let m = u64::from(n.ilog2());
            found.require(constraints.all_comparators, after.comparisons == N::comparators(m));
        }
    }
}

impl<N: Network> Task for NetworkSort<N> {
    task_items!(Input, State, Action, N::PAGE);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&N::N, difficulty, rng)
    }

    fn validate(input: &Input) -> Result<(), InvalidInput> {
        input.validate()?;

        let n = input.a.len();
        InvalidInput::unless(
            n.is_power_of_two(),
            "a",
            format!("has {n} values; the network needs a power of two"),
        )
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            stage: None,
            stage_swaps: Vec::new(),
            comparisons: 0,
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();

        let stage =
            state.stage.is_none_or(|stage| stage.iter().all(|number| (1..=n).contains(number)));
        InvalidInput::unless(stage, "stage", format!("numbers of a stage are 1 to {n}"))?;

        limits::counts("stage_swaps", state.stage_swaps.iter().copied())?;
        // Exchanges are counted in the entry of the stage in progress.
        let begun = state.stage.is_none() || !state.stage_swaps.is_empty();
        InvalidInput::unless(begun, "stage_swaps", "must have an entry for each stage")?;

        if let Some(Action::Cmp(i, j) | Action::Swap(i, j)) = state.last.0 {
            limits::below("last", [i, j], n)?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = state.a.len();
        match *action {
            Action::Stage(k, j) => {
                if !(1..=n).contains(&k) || !(1..=n).contains(&j) {
                    return Err(Illegal("a stage's numbers are between 1 and n"));
                }
                state.stage = Some([k, j]);
                state.stage_swaps.push(0);
            }
            Action::Cmp(i, j) | Action::Swap(i, j) if i >= n || j >= n => {
                return Err(Illegal("there is no such place in the array"));
            }
            Action::Cmp(..) => state.comparisons += 1,
            Action::Swap(i, j) => {
                *state.stage_swaps.last_mut().ok_or(Illegal("no stage has begun"))? += 1;
                state.a.swap(i, j);
                state.swaps += 1;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let a = &state.a;
        let n = a.len();
        // A wrong `stage` line may have named a stage that this network does not have.
        let stage = state.stage.filter(|stage| N::has(n, *stage));

        match state.last.0 {
            None => Some(Action::Stage(N::FIRST[0], N::FIRST[1])),
            Some(Action::Stage(..)) => Some(comparator::<N>(n, stage?, 0)),
            Some(Action::Cmp(i, j)) if N::partner(n, stage?, i) == Some(j) => {
                let wrong = if N::is_descending(stage?, i) { a[i] < a[j] } else { a[i] > a[j] };
                Some(if wrong { Action::Swap(i, j) } else { comparator::<N>(n, stage?, i + 1) })
            }
            Some(Action::Swap(i, j)) if N::partner(n, stage?, i) == Some(j) => {
                Some(comparator::<N>(n, stage?, i + 1))
            }
            // The pair is not a comparator of the stage: nothing is prescribed.
            Some(_) => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let constraints = N::CONSTRAINTS;
        found.require(constraints.permutation, moves::keeps_values(&before.a, &after.a));

        match *action {
            Action::Cmp(i, j) | Action::Swap(i, j) => {
                let distance = after.stage.is_some_and(|stage| N::is_distance(stage, i, j));
                found.require(constraints.distance, distance);
            }
            Action::Stage(k, j) => {
                found.require(constraints.blocks, N::are_blocks_sorted(&after.a, [k, j]));
            }
            Action::Done => found.require(constraints.sorted, after.a.is_sorted()),
        }

        check_schedule::<N>(before, *action, after, found);

        match (before.last.0, *action) {
            (_, Action::Swap(i, j)) => {
                let exchanged = after.a.get(i) != after.a.get(j) && after.is_settled::<N>(i, j);
                found.require(constraints.swap_order, exchanged);
            }
            // No exchange follows, so the comparison must have found the cells settled.
            (Some(Action::Cmp(i, j)), _) => {
                found.require(constraints.settled, before.is_settled::<N>(i, j));
            }
            _ => {}
        }

        let sum: u64 = after.stage_swaps.iter().sum();
        found.require(constraints.counts, after.swaps == sum && after.swaps <= after.comparisons);
    }

    fn steps_max(input: &Input) -> u64 {
        // 2^m cells have 1 + 2 + … + m stages; no comparator exchanges more than once.
        let m = u64::from(input.a.len().ilog2());
        m * (m + 1) / 2 + 2 * N::comparators(m) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "stage_swaps": state.stage_swaps,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
