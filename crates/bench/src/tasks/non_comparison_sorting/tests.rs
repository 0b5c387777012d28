//! Compares incrementally tracked constraints with their meaning on the whole state.

use serde_json::{Value, json};

use super::TASKS;
use crate::tasks::{Kinds, TaskRng};

type Meaning = fn(&Value, &Value, &str) -> bool;

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().expect("a list").iter().filter_map(Value::as_i64).collect()
}

fn lists(value: &Value) -> Vec<Vec<i64>> {
    value.as_array().expect("a list").iter().map(numbers).collect()
}

fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}

fn place(index: i64) -> usize {
    usize::try_from(index).expect("a place")
}

/// Pairs of the places i < j for which `holds` must be true.
fn all_pairs(n: usize, holds: impl Fn(usize, usize) -> bool) -> bool {
    (0..n).all(|i| (i + 1..n).all(|j| holds(i, j)))
}

const COUNTING: &[(&str, Meaning)] = &[
    ("placed", |input, state, _| {
        let (a, pos) = (numbers(&input["a"]), numbers(&state["pos"]));
        let placed: Vec<usize> = (0..a.len()).filter(|i| pos[*i] >= 0).collect();
        let right = placed.iter().all(|i| state["out"][place(pos[*i])] == json!(a[*i]));

        let distinct = all_pairs(placed.len(), |i, j| pos[placed[i]] != pos[placed[j]]);
        right && distinct && numbers(&state["out"]).len() == placed.len()
    }),
    ("stable", |input, state, _| {
        let (a, pos) = (numbers(&input["a"]), numbers(&state["pos"]));
        all_pairs(a.len(), |i, j| a[i] != a[j] || pos[i] < 0 || pos[j] < 0 || pos[i] < pos[j])
    }),
    ("count-bounds", |input, state, _| {
        let a = numbers(&input["a"]);
        let up_to = |v: i64| i64::try_from(a.iter().filter(|x| **x <= v).count()).expect("few");
        (0..).zip(numbers(&state["count"])).all(|(v, count)| (0..=up_to(v)).contains(&count))
    }),
    ("final-place", |input, state, _| {
        let right = sorted(numbers(&input["a"]));
        (0..right.len()).all(|p| state["out"][p].is_null() || state["out"][p] == json!(right[p]))
    }),
];

const RADIX: &[(&str, Meaning)] = &[
    ("items", |input, state, _| {
        let n = i64::try_from(numbers(&input["a"]).len()).expect("few");
        let held = sorted(lists(&state["buckets"]).concat());
        sorted(numbers(&state["order"])) == (0..n).collect::<Vec<_>>()
            && held.is_sorted_by(|x, y| x < y)
    }),
    ("bucket-digit", |input, state, _| {
        let (a, digit) = (numbers(&input["a"]), state["digit"].as_u64().expect("a number"));
        let digit_of = |i: i64| a[place(i)] / 10_i64.pow(u32::try_from(digit).expect("small")) % 10;
        (0..)
            .zip(lists(&state["buckets"]))
            .all(|(b, bucket)| bucket.iter().all(|i| digit_of(*i) == b))
    }),
    ("low-digits", |input, state, _| {
        let (a, digit) = (numbers(&input["a"]), state["digit"].as_u64().expect("a number"));
        let low = |i: &i64| (a[place(*i)] % 10_i64.pow(u32::try_from(digit).expect("small")), *i);
        numbers(&state["order"]).is_sorted_by(|i, j| low(i) < low(j))
    }),
    ("sizes", |input, state, _| {
        let n = i64::try_from(numbers(&input["a"]).len()).expect("few");
        let sizes = lists(&state["sizes"]);
        sizes.iter().all(|entry| entry.iter().sum::<i64>() == n)
            && json!(sizes.len()) == state["digit"]
    }),
];

const BUCKET: &[(&str, Meaning)] = &[
    ("multiset", |input, state, _| {
        let first =
            numbers(&input["a"])[..place(state["put"].as_i64().expect("a number"))].to_vec();
        sorted(lists(&state["buckets"]).concat()) == sorted(first)
    }),
    ("bucket-range", |input, state, _| {
        let count = input["buckets"].as_i64().expect("a number");
        (0..)
            .zip(lists(&state["buckets"]))
            .all(|(b, bucket)| bucket.iter().all(|x| x * count / 1_000_000 == b))
    }),
    ("finished", |_, state, _| {
        let before = state["b"].as_i64().map_or(0, place);
        lists(&state["buckets"])[..before].iter().all(|bucket| bucket.is_sorted())
    }),
    ("swap-order", |_, state, line| {
        let Some((i, j)) = line.strip_prefix("swap ").and_then(|places| places.split_once(' '))
        else {
            return true;
        };
        let (i, j): (usize, usize) = (i.parse().expect("a place"), j.parse().expect("a place"));
        let bucket = &lists(&state["buckets"])[place(state["b"].as_i64().expect("a bucket"))];
        j == i + 1 && bucket[i] < bucket[j]
    }),
];

/// Half reference lines, half lines with random small numbers, all of them carried out if they are
/// legal.
fn check(
    slug: &str,
    input: &Value,
    words: &[&str],
    meanings: &[(&'static str, Meaning)],
    rng: &mut TaskRng,
) {
    let task = TASKS.iter().find(|task| task.spec().slug == slug).expect("listed");
    let problem = task.read_input(input).unwrap_or_else(|error| panic!("{error}"));
    let mut machine = problem.start();

    for _ in 0..60 {
        let random = rng.one_of(words).split(' ').map(|word| match word {
            "#" => rng.below(5).to_string(),
            word => word.to_owned(),
        });
        let random = random.collect::<Vec<_>>().join(" ");
        let line = machine.reference().filter(|_| rng.chance(4, 5)).unwrap_or(random);

        if machine.propose(&line).is_err() {
            continue;
        }

        let violations = machine.violations(Kinds::ALL);
        machine.commit();
        let (found, state): (Vec<_>, _) =
            (violations.iter(machine.spec()).map(|c| c.name).collect(), machine.state());

        for (name, holds) in meanings {
            assert_eq!(
                !found.contains(name),
                holds(input, &state, &line),
                "{slug}: {name} after {line}: {state}"
            );
        }
    }
}

#[test]
fn tracked_constraints_match_the_page() {
    let mut rng = TaskRng::new(5);
    for _ in 0..400 {
        let mut values =
            |count, max: u64| -> Vec<u64> { (0..count).map(|_| rng.below(max)).collect() };

        let counted = json!({ "a": values(5, 3), "k": 2 });
        let digits = json!({ "a": values(4, 30), "d": 2 });
        let scaled = json!({ "a": values(6, 6).iter().map(|x| x * 150_000).collect::<Vec<_>>(), "buckets": 3 });

        check("counting-sort", &counted, &["count # #", "sum #", "place # #"], COUNTING, &mut rng);
        check("radix-sort", &digits, &["put # #", "gather"], RADIX, &mut rng);
        let words = ["put # #", "take # #", "cmp # #", "swap # #", "swap # #", "gather"];
        check("bucket-sort", &scaled, &words, BUCKET, &mut rng);
    }
}
