//! Bucket Sort: distribute the values to buckets of equal range, sort each by insertion, join them.
//!
//! A step is one action line: `put i b`, `take b k` opens an insertion, `cmp i j`, `swap i j`,
//! `gather`, `done`.

use super::buckets::Buckets;
use super::input;
use crate::tasks::pages::bucket_sort as page;
use crate::tasks::prelude::*;

/// The task `bucket-sort`.
pub struct BucketSort;

/// A value x stands for x / SCALE.
const SCALE: usize = 1_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The values, each in 0..=999999: x stands for x/10^6.
    pub a: Vec<usize>,
    /// Number of buckets of equal range; floor(n/4) in generated inputs.
    pub buckets: usize,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of elements distributed, in input order.
    pub put: usize,
    /// Bucket of the last `take`, from 0; none before it.
    pub b: Option<usize>,
    /// Cell of that bucket whose value is being inserted, from 0; none before the first `take`.
    pub k: Option<usize>,
    /// The values in each bucket.
    pub buckets: Buckets,
    out: Vec<u32>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    faults: Faults,
}

/// The distance of a state from satisfying the constraints, updated with each action: a full check
/// costs n steps.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// A `put` did not take the next value. Without that, `multiset` holds by construction.
    out_of_turn: bool,
    /// A value is in a bucket that is not its own; it never leaves it.
    wrong_bucket: bool,
    /// Neighbours in the wrong order within the buckets before bucket b.
    descents: usize,
}

word_actions!(Action {
    /// `put i b`: appends `a[i]` to bucket b.
    Put(i, b) = "put",
    /// `take b k`: begins the insertion of cell k of bucket b.
    Take(b, k) = "take",
    /// `cmp i j`: compares cells i and j of the current bucket.
    Cmp(i, j) = "cmp",
    /// `swap i j`: exchanges cells i and j of the current bucket.
    Swap(i, j) = "swap",
    /// Joins the buckets into the output.
    Gather = "gather",
    /// Ends the trace.
    Done = "done",
});

impl Instance {
    fn bucket_of(&self, value: usize) -> usize {
        value * self.buckets / SCALE
    }

    fn put(&self, i: usize) -> Action {
        Action::Put(i, self.bucket_of(self.a[i]))
    }
}

impl State {
    /// Neighbours in the wrong order within these buckets.
    fn descents(&self, buckets: std::ops::Range<usize>) -> usize {
        let within =
            |bucket| self.buckets.get(bucket).windows(2).filter(|pair| pair[0] > pair[1]).count();
        buckets.map(within).sum()
    }

    /// The bucket of the last `take`, if it has cells i and j.
    fn bucket_with(&self, i: usize, j: usize) -> Result<usize, Illegal> {
        let bucket = self.b.ok_or(Illegal("no bucket has been taken"))?;

        if i.max(j) < self.buckets.size(bucket) {
            Ok(bucket)
        } else {
            Err(Illegal("the bucket has fewer cells"))
        }
    }

    /// The first insertion from this bucket on.
    fn first_take(&self, from: usize) -> Action {
        let bucket = (from..self.buckets.count()).find(|bucket| self.buckets.size(*bucket) > 1);
        bucket.map_or(Action::Gather, |bucket| Action::Take(bucket, 1))
    }

    /// The action after an insertion.
    fn next_take(&self, bucket: usize, k: usize) -> Action {
        if k + 1 < self.buckets.size(bucket) {
            Action::Take(bucket, k + 1)
        } else {
            self.first_take(bucket + 1)
        }
    }

    fn holds_the_first_values(&self, a: &[usize]) -> bool {
        let mut values: Vec<usize> = self.buckets.joined().iter().map(|x| *x as usize).collect();
        values.sort_unstable();
        values == sorted(&a[..self.put])
    }
}

fn sorted(values: &[usize]) -> Vec<usize> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
}

/// Returns whether the insertions so far are those of all cells before cell k of bucket b; without
/// a cell, those of all cells.
fn follows_insertions(before: &State, next: Option<(usize, usize)>) -> bool {
    let rest = |from: usize, to: usize| (from..to).all(|bucket| before.buckets.size(bucket) <= 1);
    let (bucket, first) = match next {
        Some((bucket, k)) => (bucket, k == 1),
        None => (before.buckets.count(), true),
    };

    match (before.b, before.k) {
        (Some(b), Some(k)) if next == Some((b, k + 1)) => true,
        (Some(b), Some(k)) => {
            first && b < bucket && k + 1 == before.buckets.size(b) && rest(b + 1, bucket)
        }
        _ => first && rest(0, bucket),
    }
}

/// Returns whether the insertion in progress, if there is one, has met a value that is not greater,
/// or the start of its bucket.
fn is_inserted(before: &State) -> bool {
    let (Some(b), Some(k)) = (before.b, before.k) else { return true };
    let compared = matches!(before.last.0, Some(Action::Cmp(..) | Action::Swap(0, _)));
    compared && before.buckets.get(b).get(..=k).is_some_and(<[u32]>::is_sorted)
}

fn check_order(instance: &Instance, before: &State, action: Action, found: &mut Violations) {
    let last = before.last.0;
    let distributed = before.put == instance.a.len();

    match action {
        Action::Put(i, _) => {
            found.require(
                page::PUT_ORDER,
                i == before.put && matches!(last, None | Some(Action::Put(..))),
            );
        }
        Action::Take(b, k) => {
            found
                .require(page::TAKE_ORDER, distributed && follows_insertions(before, Some((b, k))));
            found.require(page::INSERTED, is_inserted(before));
        }
        Action::Cmp(i, j) => {
            let reached =
                matches!(last, Some(Action::Take(_, cell) | Action::Swap(cell, _)) if cell == j);
            found.require(page::CMP_ORDER, reached && j.checked_sub(1) == Some(i));
        }
        Action::Swap(i, j) => found.require(page::COMPARED, last == Some(Action::Cmp(i, j))),
        Action::Gather => {
            found.require(page::TAKE_ORDER, distributed && follows_insertions(before, None));
            found.require(page::INSERTED, is_inserted(before));
        }
        Action::Done => {}
    }
}

impl Task for BucketSort {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let a = input::uniform(n, SCALE - 1, rng);
            if !a.is_sorted() {
                return Instance { a, buckets: n / 4 };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let counts = 1..=input::LENGTH_MAX;
        let range = format!("must lie in 1..{}", input::LENGTH_MAX);
        InvalidInput::unless(counts.contains(&instance.buckets), "buckets", range)?;
        input::validate(&instance.a, SCALE - 1)
    }

    fn start(instance: &Instance) -> State {
        State {
            put: 0,
            b: None,
            k: None,
            buckets: Buckets::empty(instance.buckets),
            out: Vec::new(),
            comparisons: 0,
            swaps: 0,
            last: Last(None),
            faults: Faults::default(),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.a.len();
        limits::at_most("put", state.put, n)?;

        let count = state.buckets.count();
        InvalidInput::unless(
            count == instance.buckets,
            "buckets",
            format!("must be {} lists", instance.buckets),
        )?;

        let values = state.buckets.joined().iter().all(|value| (*value as usize) < SCALE);
        InvalidInput::unless(values, "buckets", format!("every value must be below {SCALE}"))?;
        InvalidInput::unless(
            state.buckets.joined().len() == state.put,
            "put",
            "must be the number of values in `buckets`",
        )?;

        limits::below("b", state.b, instance.buckets)?;

        let cell = match (state.b, state.k) {
            (Some(b), Some(k)) => k < state.buckets.size(b),
            (b, k) => b.is_none() && k.is_none(),
        };
        InvalidInput::unless(cell, "k", "must be a cell of bucket `b`, or null where `b` is null")?;

        match state.last.0 {
            None => InvalidInput::unless(state.put == 0, "put", "must be 0 before the first line"),
            Some(Action::Take(b, k)) => {
                let taken = (state.b, state.k) == (Some(b), Some(k));
                InvalidInput::unless(taken, "last", "must take cell `k` of bucket `b`")
            }
            Some(_) => Ok(()),
        }
    }

    fn complete(instance: &Instance, state: &mut State) {
        let items = |bucket| state.buckets.get(bucket).iter().map(|value| *value as usize);
        let wrong = |bucket| items(bucket).any(|value| instance.bucket_of(value) != bucket);

        state.faults = Faults {
            // A submitted state does not tell which elements were put, so its values are always
            // compared.
            out_of_turn: true,
            wrong_bucket: (0..instance.buckets).any(wrong),
            descents: state.descents(0..state.b.unwrap_or(0)),
        };
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Put(i, b) => {
                let value =
                    *instance.a.get(i).ok_or(Illegal("there is no such place in the array"))?;
                if b >= instance.buckets {
                    return Err(Illegal("there is no such bucket"));
                }
                if state.put >= instance.a.len() {
                    return Err(Illegal("all elements are distributed"));
                }

                // Only buckets before the current one must be in order already.
                let descends =
                    state.buckets.get(b).last().is_some_and(|last| *last as usize > value);
                state.faults.descents +=
                    usize::from(descends && state.b.is_some_and(|current| b < current));
                state.faults.out_of_turn |= i != state.put;
                state.faults.wrong_bucket |= b != instance.bucket_of(value);

                state.buckets.push(b, value);
                state.put += 1;
            }
            Action::Take(b, k) => {
                if b >= instance.buckets || k >= state.buckets.size(b) {
                    return Err(Illegal("there is no such cell in a bucket"));
                }

                let before = state.b.unwrap_or(0);
                // The buckets between the old and the new one join or leave; one of the ranges is
                // empty.
                state.faults.descents += state.descents(before..b);
                state.faults.descents -= state.descents(b..before);

                state.b = Some(b);
                state.k = Some(k);
            }
            Action::Cmp(i, j) => {
                state.bucket_with(i, j)?;
                state.comparisons += 1;
            }
            Action::Swap(i, j) => {
                let bucket = state.bucket_with(i, j)?;
                state.buckets.swap(bucket, i, j);
                state.swaps += 1;
            }
            Action::Gather => state.out = state.buckets.joined().to_vec(),
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let n = instance.a.len();
        match state.last.0 {
            None => Some(instance.put(0)),
            Some(Action::Put(i, _)) if i + 1 != state.put => None,
            Some(Action::Put(..)) if state.put < n => Some(instance.put(state.put)),
            Some(Action::Put(..)) => Some(state.first_take(0)),
            // Nothing is prescribed after a step that came before all elements were distributed.
            Some(_) if state.put < n => None,
            Some(Action::Take(_, k)) => Some(Action::Cmp(k.checked_sub(1)?, k)),
            Some(Action::Cmp(i, j)) => {
                let (b, k) = (state.b?, state.k?);
                if j != i + 1 || j > k {
                    return None;
                }
                let cells = state.buckets.get(b);
                Some(if cells[i] > cells[j] { Action::Swap(i, j) } else { state.next_take(b, k) })
            }
            Some(Action::Swap(i, j)) => {
                let (b, k) = (state.b?, state.k?);
                if j != i + 1 || j > k {
                    return None;
                }
                Some(if i > 0 { Action::Cmp(i - 1, i) } else { state.next_take(b, k) })
            }
            Some(Action::Gather) => Some(Action::Done),
            Some(Action::Done) => None,
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        check_order(instance, before, *action, found);

        let faults = &after.faults;
        found.require(
            page::MULTISET,
            !faults.out_of_turn || after.holds_the_first_values(&instance.a),
        );
        found.require(page::BUCKET_RANGE, !faults.wrong_bucket);
        found.require(page::FINISHED, faults.descents == 0);

        if let Action::Swap(i, j) = *action {
            let cells = after.b.map_or(&[][..], |bucket| after.buckets.get(bucket));
            found.require(page::SWAP_ORDER, j == i + 1 && cells.get(i) < cells.get(j));
        }

        found.require(page::COUNTS, after.swaps <= after.comparisons);

        if *action == Action::Done {
            found.require(
                page::SORTED,
                after.out.iter().map(|x| *x as usize).eq(sorted(&instance.a)),
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // All values may fall into one bucket: n puts, n-1 insertions, n(n-1)/2 comparisons and as
        // many swaps.
        let n = instance.a.len() as u64;
        n + (n - 1) + n * (n - 1) + 2
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let sizes: Vec<usize> = state.buckets.sizes().collect();
        json!({ "sorted": state.out, "sizes": sizes, "comparisons": state.comparisons, "swaps": state.swaps })
    }
}
