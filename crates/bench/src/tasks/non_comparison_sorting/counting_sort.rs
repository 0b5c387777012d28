//! Counting Sort: count each value, sum the counts up to places, then place every element, from the
//! last to the first.
//!
//! A step is one action line: `count i v`, `sum v`, `place i p`, `done`.

use std::sync::Arc;

use super::cells::Cells;
use super::input;
use crate::tasks::pages::counting_sort as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `counting-sort`.
pub struct CountingSort;

/// The greatest value that a user may allow.
const VALUE_MAX: usize = 65_535;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The values, each in 0..=k.
    pub a: Vec<usize>,
    /// Greatest value allowed.
    pub k: usize,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// For each value 0..=k its count; once summed, the end of its free cells in the output.
    pub count: Vec<i64>,
    #[serde(
        serialize_with = "Cells::serialize_or_minus_one",
        deserialize_with = "Cells::deserialize_or_minus_one"
    )]
    pos: Cells,
    out: Cells,
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    facts: Arc<Facts>,
    #[serde(skip)]
    faults: Faults,
}

/// Facts that the constraints compare with; they follow from the input.
#[derive(Default)]
struct Facts {
    sorted: Vec<usize>,
    /// Number of input values <= v.
    up_to: Vec<usize>,
    /// The input places in order of value, then of place.
    by_value: Vec<usize>,
}

/// The distance of a state from satisfying the constraints, updated with each action: a full check
/// costs n steps.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// An element was placed again or on top of another. Without that, `placed` holds by
    /// construction.
    placed_again: bool,
    /// Pairs that break `stable`.
    unstable: usize,
    /// Values that break `count-bounds`.
    counts: usize,
    /// Cells of `out` that break `final-place`.
    misplaced: usize,
}

word_actions!(Action {
    /// `count i v`: counts `a[i]`, whose value is v.
    Count(i, v) = "count",
    /// `sum v`: adds the count of v-1 to that of v.
    Sum(v) = "sum",
    /// `place i p`: puts `a[i]` into cell p of the output.
    Place(i, p) = "place",
    /// Ends the trace.
    Done = "done",
});

const NO_PLACE: Illegal = Illegal("there is no such place in the array");

impl Facts {
    fn of(instance: &Instance) -> Self {
        let mut by_value: Vec<usize> = (0..instance.a.len()).collect();
        by_value.sort_by_key(|i| instance.a[*i]);

        let sorted: Vec<usize> = by_value.iter().map(|i| instance.a[*i]).collect();
        let up_to = (0..=instance.k).map(|v| sorted.partition_point(|x| *x <= v)).collect();
        Self { sorted, up_to, by_value }
    }

    /// The input places that hold this value.
    fn places_of(&self, value: usize) -> &[usize] {
        let start = value.checked_sub(1).map_or(0, |less| self.up_to[less]);
        &self.by_value[start..self.up_to[value]]
    }

    fn breaks_bounds(&self, value: usize, count: i64) -> bool {
        usize::try_from(count).map_or(true, |count| count > self.up_to[value])
    }
}

impl State {
    /// Pairs of places with the same value, both placed, the later one not after the earlier.
    fn unstable_pairs(&self, k: usize) -> usize {
        let positions = |value: usize| {
            let placed = self.facts.places_of(value).iter().filter_map(|i| self.pos.get(*i));
            placed.map(|position| i64::try_from(position).unwrap_or(i64::MAX)).collect::<Vec<_>>()
        };
        (0..=k).map(|value| array::wrong_pairs(&positions(value), true)).sum()
    }

    fn set_count(&mut self, value: usize, count: i64) -> Result<(), Illegal> {
        if count.unsigned_abs() >= NUMBER_LIMIT {
            return Err(Illegal("the count would leave the numbers that JSON holds exactly"));
        }

        self.faults.counts += usize::from(self.facts.breaks_bounds(value, count));
        self.faults.counts -= usize::from(self.facts.breaks_bounds(value, self.count[value]));

        self.count[value] = count;
        Ok(())
    }

    fn set_position(&mut self, i: usize, value: usize, place: usize) {
        // Pairs of i with an equal element that is placed out of order, if i lies at this position.
        let unstable = |position: usize| {
            let others = self.facts.places_of(value).iter().filter(|other| **other != i);
            let placed = others.filter_map(|other| Some((*other, self.pos.get(*other)?)));
            placed
                .filter(|(other, at)| if *other < i { *at >= position } else { position >= *at })
                .count()
        };

        let before = self.pos.get(i).map_or(0, unstable);
        self.faults.unstable = self.faults.unstable + unstable(place) - before;
        self.faults.placed_again |= self.pos.get(i).is_some() || self.out.get(place).is_some();
        self.pos.set(i, place);
    }

    fn set_out(&mut self, place: usize, value: usize) {
        let right = self.facts.sorted[place];
        self.faults.misplaced -= usize::from(self.out.get(place).is_some_and(|held| held != right));
        self.faults.misplaced += usize::from(value != right);
        self.out.set(place, value);
    }

    fn all_is_placed_once(&self, a: &[usize]) -> bool {
        let mut taken = vec![false; a.len()];
        let right = self.pos.iter().zip(a).all(|(position, value)| {
            position.is_none_or(|p| {
                !std::mem::replace(&mut taken[p], true) && self.out.get(p) == Some(*value)
            })
        });

        // Every position taken is a cell that is not null, so that there is no other when the
        // numbers agree.
        right && self.out.iter().zip(taken).all(|(cell, taken)| cell.is_some() == taken)
    }

    /// Returns whether this many input values are less than v, for each v.
    fn counts_are_starts(&self) -> bool {
        let less = std::iter::once(&0).chain(&self.facts.up_to);
        self.count.iter().zip(less).all(|(count, less)| usize::try_from(*count).ok() == Some(*less))
    }

    fn place(&self, instance: &Instance, i: usize) -> Option<Action> {
        let place = usize::try_from(self.count[instance.a[i]] - 1).ok()?;
        (place < instance.a.len()).then_some(Action::Place(i, place))
    }
}

/// Returns whether each of the three scans continues where the previous line left it, or begins
/// once the scan before it is complete.
fn check_scans(
    instance: &Instance,
    last: Option<Action>,
    action: Action,
    after: &State,
    found: &mut Violations,
) {
    let (n, k) = (instance.a.len(), instance.k);
    let counted = matches!(last, Some(Action::Count(i, _)) if i + 1 == n);

    match action {
        Action::Count(i, v) => {
            let follows = match last {
                None => i == 0,
                Some(Action::Count(before, _)) => i == before + 1,
                _ => false,
            };
            found.require(page::COUNT_ORDER, follows && instance.a.get(i) == Some(&v));
        }
        Action::Sum(v) => {
            let follows = if v == 1 { counted } else { last == v.checked_sub(1).map(Action::Sum) };
            found.require(page::SUM_ORDER, follows);
        }
        Action::Place(i, p) => {
            let follows = match last {
                Some(Action::Place(before, _)) => before == i + 1,
                _ => i + 1 == n && if k == 0 { counted } else { last == Some(Action::Sum(k)) },
            };
            found.require(page::PLACE_ORDER, follows);

            let count = instance.a.get(i).and_then(|v| after.count.get(*v));
            found.require(
                page::PLACE_COUNT,
                count.is_some_and(|count| usize::try_from(*count) == Ok(p)),
            );
        }
        Action::Done => found.require(page::STARTS, after.counts_are_starts()),
    }
}

impl Task for CountingSort {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let k = page::size::K.draw(difficulty, rng);
            let a = input::uniform(n, k, rng);
            if !a.is_sorted() {
                return Instance { a, k };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        InvalidInput::unless(instance.k <= VALUE_MAX, "k", format!("must be at most {VALUE_MAX}"))?;
        input::validate(&instance.a, instance.k)
    }

    fn start(instance: &Instance) -> State {
        let n = instance.a.len();
        State {
            count: vec![0; instance.k + 1],
            pos: Cells::empty(n),
            out: Cells::empty(n),
            last: Last(None),
            facts: Arc::new(Facts::of(instance)),
            faults: Faults::default(),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.a.len();
        limits::length("count", state.count.len(), instance.k + 1)?;

        // Half the limit, because a step adds two counts.
        let most = i64::try_from(NUMBER_LIMIT / 2).unwrap_or(i64::MAX) - 1;
        limits::within("count", state.count.iter().copied(), -most..=most)?;
        limits::length("pos", state.pos.iter().count(), n)?;
        limits::below("pos", state.pos.iter(), n)?;
        limits::length("out", state.out.iter().count(), n)?;

        match state.last.0 {
            Some(Action::Count(i, _) | Action::Place(i, _)) => limits::below("last", [i], n),
            _ => Ok(()),
        }
    }

    fn complete(instance: &Instance, state: &mut State) {
        state.facts = Arc::new(Facts::of(instance));
        state.faults = Faults {
            // A value placed twice can no longer be detected, so the places are always compared in
            // such a state.
            placed_again: true,
            unstable: state.unstable_pairs(instance.k),
            counts: (0..)
                .zip(&state.count)
                .filter(|(value, count)| state.facts.breaks_bounds(*value, **count))
                .count(),
            misplaced: state
                .out
                .iter()
                .zip(&state.facts.sorted)
                .filter(|(cell, right)| cell.is_some_and(|x| x != **right))
                .count(),
        };
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Count(i, v) => {
                instance.a.get(i).ok_or(NO_PLACE)?;
                let count = state.count.get(v).ok_or(Illegal("there is no such value"))?;
                state.set_count(v, count + 1)?;
            }
            Action::Sum(v) => {
                let less = v.checked_sub(1).ok_or(Illegal("there is no value before 0"))?;
                let count = state.count.get(v).ok_or(Illegal("there is no such value"))?;
                state.set_count(v, count + state.count[less])?;
            }
            Action::Place(i, p) => {
                let value = *instance.a.get(i).ok_or(NO_PLACE)?;
                instance.a.get(p).ok_or(NO_PLACE)?;

                state.set_count(value, state.count[value] - 1)?;
                state.set_position(i, value, p);
                state.set_out(p, value);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let (a, k) = (&instance.a, instance.k);
        match state.last.0 {
            None => Some(Action::Count(0, a[0])),
            Some(Action::Count(i, v)) if v != a[i] => None,
            Some(Action::Count(i, _)) if i + 1 < a.len() => Some(Action::Count(i + 1, a[i + 1])),
            Some(Action::Count(..)) if k > 0 => Some(Action::Sum(1)),
            Some(Action::Sum(v)) if v < k => Some(Action::Sum(v + 1)),
            Some(Action::Count(..) | Action::Sum(_)) => state.place(instance, a.len() - 1),
            Some(Action::Place(0, _)) => Some(Action::Done),
            Some(Action::Place(i, _)) => state.place(instance, i - 1),
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
        check_scans(instance, before.last.0, *action, after, found);

        let faults = &after.faults;
        found.require(page::PLACED, !faults.placed_again || after.all_is_placed_once(&instance.a));
        found.require(page::STABLE, faults.unstable == 0);
        found.require(page::COUNT_BOUNDS, faults.counts == 0);
        found.require(page::FINAL_PLACE, faults.misplaced == 0);

        if *action == Action::Done {
            found.require(
                page::SORTED,
                after.out.iter().all(|cell| cell.is_some()) && after.out.iter().is_sorted(),
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // The exact number.
        (2 * instance.a.len() + instance.k + 1) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "sorted": state.out, "positions": state.pos.or_minus_one(), "starts": state.count })
    }
}
