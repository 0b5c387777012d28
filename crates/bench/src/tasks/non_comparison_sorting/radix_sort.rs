//! Radix Sort: distribute the elements to ten buckets by a digit and gather them again, from the
//! units upwards.
//!
//! A step is one action line: `put i b`, `gather` at the end of a digit, `done`.

use super::buckets::Buckets;
use super::input;
use crate::tasks::pages::radix_sort as page;
use crate::tasks::prelude::*;

/// The task `radix-sort`.
pub struct RadixSort;

const BASE: usize = 10;
/// Values of this many digits stay exact in JSON.
const DIGITS_MAX: u32 = 15;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The values, each below 10^d.
    pub a: Vec<usize>,
    /// Number of decimal digits.
    pub d: u32,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of digits done, which is the digit being distributed; 0 is the units.
    pub digit: u32,
    /// Places of the input in the order of the last `gather`; ascending at the start.
    pub order: Vec<u32>,
    /// Places of the input in each of the ten buckets, in order of arrival.
    pub buckets: Buckets,
    sizes: Vec<[usize; BASE]>,
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    faults: Faults,
}

/// The constraints that a state breaks, updated with each action: a full check costs n steps.
#[derive(Clone, Default)]
struct Faults {
    /// By input place, true if it is in the buckets.
    in_buckets: Vec<bool>,
    /// A place is in the buckets twice.
    twice: bool,
    /// A place is in a bucket that is not its digit's.
    wrong_bucket: bool,
    /// `order` is not a permutation.
    order: bool,
    low_digits: bool,
    sizes: bool,
}

word_actions!(Action {
    /// `put i b`: appends place i of the input to bucket b.
    Put(i, b) = "put",
    /// Joins the buckets into the new order, empties them and goes to the next digit.
    Gather = "gather",
    /// Ends the trace.
    Done = "done",
});

impl Instance {
    /// floor(a[i] / 10^digit) mod 10.
    fn digit(&self, i: usize, digit: u32) -> usize {
        self.a[i] / BASE.pow(digit) % BASE
    }
}

impl Faults {
    fn judge_order(&mut self, instance: &Instance, order: &[u32], digit: u32) {
        // The place breaks ties, because every pass is stable.
        let low = |i: u32| (instance.a[i as usize] % BASE.pow(digit), i);
        self.order = order.len() != instance.a.len() || !is_permutation(order);
        self.low_digits = !order.is_sorted_by(|i, j| low(*i) < low(*j));
    }
}

fn is_permutation(order: &[u32]) -> bool {
    let mut seen = vec![false; order.len()];
    order
        .iter()
        .all(|i| seen.get_mut(*i as usize).is_some_and(|seen| !std::mem::replace(seen, true)))
}

impl Task for RadixSort {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let d =
                u32::try_from(page::size::D.draw(difficulty, rng)).expect("invariant: few digits");

            let a = input::uniform(n, BASE.pow(d) - 1, rng);
            if !a.is_sorted() && a.iter().any(|x| *x >= BASE.pow(d - 1)) {
                return Instance { a, d };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let digits = 1..=DIGITS_MAX;
        InvalidInput::unless(
            digits.contains(&instance.d),
            "d",
            format!("must lie in 1..{DIGITS_MAX}"),
        )?;
        input::validate(&instance.a, BASE.pow(instance.d) - 1)
    }

    fn start(instance: &Instance) -> State {
        let n = instance.a.len();
        State {
            digit: 0,
            order: (0..).take(n).collect(),
            buckets: Buckets::empty(BASE),
            sizes: Vec::new(),
            last: Last(None),
            faults: Faults { in_buckets: vec![false; n], ..Faults::default() },
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.a.len();
        InvalidInput::unless(
            state.digit <= instance.d,
            "digit",
            format!("must be at most {}", instance.d),
        )?;

        limits::below("order", state.order.iter().map(|i| *i as usize), n)?;

        let count = state.buckets.count();
        InvalidInput::unless(count == BASE, "buckets", format!("must be {BASE} lists"))?;
        limits::below("buckets", state.buckets.joined().iter().map(|i| *i as usize), n)?;
        limits::counts("sizes", state.sizes.iter().flatten().copied())?;

        let put = matches!(state.last.0, Some(Action::Put(..)));
        InvalidInput::unless(
            !put || !state.buckets.joined().is_empty(),
            "buckets",
            "must hold what was put last",
        )
    }

    fn complete(instance: &Instance, state: &mut State) {
        let mut in_buckets = vec![false; instance.a.len()];
        let mut faults = Faults::default();
        for i in state.buckets.joined() {
            faults.twice |= std::mem::replace(&mut in_buckets[*i as usize], true);
        }

        let wrong = |bucket: usize, i: &u32| instance.digit(*i as usize, state.digit) != bucket;
        faults.wrong_bucket =
            (0..BASE).any(|bucket| state.buckets.get(bucket).iter().any(|i| wrong(bucket, i)));

        faults.in_buckets = in_buckets;
        faults.judge_order(instance, &state.order, state.digit);
        faults.sizes =
            state.sizes.iter().any(|sizes| sizes.iter().sum::<usize>() != instance.a.len());

        state.faults = faults;
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let a = &instance.a;
        let faults = &mut state.faults;

        match *action {
            Action::Put(i, b) => {
                if i >= a.len() || b >= BASE {
                    return Err(Illegal("there is no such place or no such bucket"));
                }
                faults.twice |= std::mem::replace(&mut faults.in_buckets[i], true);
                faults.wrong_bucket |= instance.digit(i, state.digit) != b;
                state.buckets.push(b, i);
            }
            Action::Gather => {
                if state.digit >= instance.d {
                    return Err(Illegal("there is no digit left"));
                }
                let mut sizes = [0; BASE];
                sizes.iter_mut().zip(state.buckets.sizes()).for_each(|(entry, size)| *entry = size);
                state.sizes.push(sizes);
                state.order = state.buckets.joined().to_vec();
                state.buckets = Buckets::empty(BASE);
                state.digit += 1;

                faults.in_buckets.fill(false);
                faults.twice = false;
                faults.wrong_bucket = false;
                faults.judge_order(instance, &state.order, state.digit);
                faults.sizes |= state.order.len() != a.len();
            }
            Action::Done => {}
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let put = |count: usize| {
            let i = *state.order.get(count)? as usize;
            (state.digit < instance.d).then(|| Action::Put(i, instance.digit(i, state.digit)))
        };

        match state.last.0 {
            Some(Action::Put(i, _)) => {
                // The places in the buckets are the first of `order`.
                let count = state.buckets.joined().len();
                if state.digit >= instance.d
                    || state.order.get(count - 1).is_none_or(|last| *last as usize != i)
                {
                    None
                } else {
                    put(count).or(Some(Action::Gather))
                }
            }
            Some(Action::Gather) if state.digit == instance.d => Some(Action::Done),
            None | Some(Action::Gather) => put(0),
            Some(Action::Done) => None,
        }
    }

    fn violations(
        instance: &Instance,
        _: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let faults = &after.faults;
        found.require(page::ITEMS, !faults.order && !faults.twice);
        found.require(page::BUCKET_DIGIT, !faults.wrong_bucket);
        found.require(page::LOW_DIGITS, !faults.low_digits);
        found.require(page::SIZES, !faults.sizes);

        if let Action::Put(i, _) = *action {
            let place = after.buckets.joined().len().checked_sub(1);
            let next = place
                .and_then(|place| after.order.get(place))
                .is_some_and(|next| *next as usize == i);
            found.require(page::PUT_ORDER, next && after.digit < instance.d);
        }

        if *action == Action::Done {
            found.require(
                page::DIGITS,
                after.digit == instance.d && after.buckets.joined().is_empty(),
            );
            found.require(
                page::SORTED,
                after.order.iter().map(|i| instance.a[*i as usize]).is_sorted(),
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // The exact number.
        u64::from(instance.d) * (instance.a.len() as u64 + 1) + 1
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let sorted: Vec<usize> = state.order.iter().map(|i| instance.a[*i as usize]).collect();
        json!({ "sorted": sorted, "order": state.order, "sizes": state.sizes })
    }
}
