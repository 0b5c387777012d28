//! Bucket Sort: multiplies a value by the number of buckets digit by digit, then compares within
//! buckets.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::non_comparison_sorting::bucket_sort::{
    Action, BucketSort, Instance, State,
};

use crate::Lesson;
use crate::numbers::{comparison_of_naturals, indexed_digits, low_first, place};

pub struct BucketSortLesson;

/// Digits of a value, which is a fraction of a million.
const DIGITS: usize = 6;

/// Buckets whose sizes are shown at the end of one. Their mean size is 4.
const WINDOW: usize = 8;

impl Lesson for BucketSortLesson {
    type Task = BucketSort;

    fn view(instance: &Instance, state: &State) -> String {
        let (put, count) = (state.put, instance.buckets);

        match state.last.0 {
            None | Some(Action::Put(..)) => match instance.a.get(put) {
                Some(value) => format!(
                    "put {put:03} buckets {count:03} value {}",
                    indexed_digits(*value, DIGITS)
                ),
                None => format!("put - sizes {}", sizes(state, 0).join(" ")),
            },
            Some(Action::Take(_, k)) => format!("take {k:02}"),
            Some(Action::Cmp(i, j)) => {
                format!(
                    "cmp {i:02} {j:02} {} {} {}",
                    cell(state, i),
                    cell(state, j),
                    insertion(state)
                )
            }
            Some(Action::Swap(i, j)) => format!("swap {i:02} {j:02} {}", insertion(state)),
            Some(Action::Gather) => "gather".to_owned(),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = BucketSort::reference(instance, state)?;

        let after_insertion = || {
            let (bucket, k) = (state.b?, state.k?);
            let size = state.buckets.size(bucket);
            let next = format!("{:02}/{size:02}", k + 1);
            Some(if k + 1 < size {
                next
            } else {
                [vec![next], up_to_take(state, bucket + 1)].concat().join(" ")
            })
        };

        Some(match (state.last.0, action) {
            (None | Some(Action::Put(..)), Action::Put(i, _)) => {
                product(instance.a[i], instance.buckets)
            }
            (Some(Action::Put(..)), _) => up_to_take(state, 0).join(" "),
            (Some(Action::Cmp(i, j)), action) => {
                let cells = state.buckets.get(state.b?);
                let compared = comparison_of_naturals(cells[i] as usize, cells[j] as usize, DIGITS);
                match action {
                    Action::Swap(..) => compared,
                    _ => format!("{compared} {}", after_insertion()?),
                }
            }
            // At the start of its bucket the cell has nothing left to be compared with.
            (Some(Action::Swap(0, _)), _) => after_insertion()?,
            _ => String::new(),
        })
    }
}

fn cell(state: &State, i: usize) -> String {
    let value = state.b.and_then(|bucket| state.buckets.get(bucket).get(i));
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:0DIGITS$}"))
}

/// The cell that is inserted; if it is the last of its bucket, also the sizes of the next buckets.
fn insertion(state: &State) -> String {
    let (Some(bucket), Some(k)) = (state.b, state.k) else { return "-".to_owned() };
    let size = state.buckets.size(bucket);

    let next = if k + 1 < size {
        String::new()
    } else {
        format!(" sizes {}", sizes(state, bucket + 1).join(" "))
    };

    format!("b={} k={k:02} size={size:02}{next}", place(Some(bucket), 3))
}

/// The buckets from this one on, each with its size; `-` follows the last.
fn sizes(state: &State, from: usize) -> Vec<String> {
    let size = |bucket: usize| {
        let exists = bucket < state.buckets.count();
        if exists {
            format!("{bucket:03}:{:02}", state.buckets.size(bucket))
        } else {
            "-".to_owned()
        }
    };

    let end = (from + WINDOW).min(state.buckets.count() + 1);
    (from..end).map(size).collect()
}

/// The sizes up to the first bucket with two cells or more.
fn up_to_take(state: &State, from: usize) -> Vec<String> {
    let sizes = sizes(state, from);
    let passed = (from..state.buckets.count()).position(|bucket| state.buckets.size(bucket) > 1);
    let shown = passed.map_or(sizes.len(), |passed| sizes.len().min(passed + 1));
    sizes[..shown].to_vec()
}

/// value · buckets without its last six digits. For each digit of the value, lowest first: its
/// product with the number of buckets, each digit with its carry; plus the number before without
/// its lowest digit, likewise.
fn product(value: usize, buckets: usize) -> String {
    let width = buckets.to_string().len().max(3);
    let factor = low_first(buckets, width);

    let mut before = 0;
    let mut steps = Vec::new();

    for (place, digit) in low_first(value, DIGITS).chars().enumerate() {
        let times = digit.to_digit(10).unwrap_or(0);

        let mut carry = 0;
        let mut multiplied = String::new();
        for factor in factor.chars() {
            let product = times * factor.to_digit(10).unwrap_or(0) + carry;
            carry = product / 10;
            multiplied += &format!("{}{carry}", product % 10);
        }

        // The product with this digit, plus what the lower digits have carried over.
        let multiple = buckets * times as usize;
        let total = before + multiple;
        let mut added = String::new();
        let mut carry = 0;
        for (x, y) in
            low_first(multiple, width + 1).chars().zip(low_first(before, width + 1).chars())
        {
            let sum = x.to_digit(10).unwrap_or(0) + y.to_digit(10).unwrap_or(0) + carry;
            carry = sum / 10;
            added += &format!("{}{carry}", sum % 10);
        }

        steps.push(format!("{place}:{digit} {multiplied}+{added}"));
        before = total / 10;
    }

    steps.push(low_first(before, width));
    steps.join(" ")
}
