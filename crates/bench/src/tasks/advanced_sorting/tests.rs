//! Constraints that do not run the algorithm: they name what is wrong with a line, and hold of
//! every right one.

use super::TASKS;
use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::{AnyTask, Difficulty, Kinds};

/// Task; a line of the page's example; a wrong one in its place; a constraint that it breaks.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("counting-sort", "count 3 0", "count 4 2", "count-order"),
    ("counting-sort", "count 3 0", "count 3 1", "count-order"),
    ("counting-sort", "sum 1", "sum 2", "sum-order"),
    ("counting-sort", "place 7 6", "place 6 1", "place-order"),
    ("counting-sort", "place 7 6", "place 7 5", "place-count"),
    ("radix-sort", "put 2 5", "put 3 0", "put-order"),
    ("bucket-sort", "put 2 0", "put 3 0", "put-order"),
    ("bucket-sort", "take 0 2", "take 0 3", "take-order"),
    ("bucket-sort", "take 0 2", "cmp 0 1", "cmp-order"),
    ("bucket-sort", "cmp 0 1", "take 0 2", "inserted"),
    ("bucket-sort", "cmp 1 2", "swap 1 2", "compared"),
    ("timsort", "run 43 asc", "run 42 asc", "whole-run"),
    ("timsort", "push", "run 44 asc", "pushed"),
    ("timsort", "insert 46 44", "insert 46 43", "inserted"),
    ("timsort", "insert 46 44", "push", "run-length"),
    ("timsort", "run 46 desc", "merge 0", "format"),
    ("timsort", "merge 0", "done", "one-run"),
    ("timsort", "gl 4", "l", "gallop"),
    ("timsort", "gl 4", "gl 3", "gallop"),
    ("timsort", "gl 4", "rest", "both-runs"),
    ("introsort", "part 0 40", "leaf 0 40", "range-size"),
    ("introsort", "median 20", "median 0", "median"),
    ("introsort", "cmp 1 39", "cmp 2 39", "scan-order"),
    ("introsort", "swap 1 2", "cmp 3 39", "partition"),
    ("introsort", "swap 1 2", "swap 1 1", "swap-order"),
    ("introsort", "insert 1 1", "insert 1 0", "inserted"),
    ("introsort", "sift 7 7", "sift 6 6", "sift-order"),
    ("introsort", "pop 16", "pop 15", "pop-order"),
    ("introsort", "pop 1", "done", "completed"),
    ("patience-sort", "deal 3 2", "take 0", "dealt-first"),
    ("strand-sort", "skip", "strand", "scanned"),
    ("strand-sort", "pull", "skip", "skipped"),
    ("bitonic-sort", "stage 4 2", "stage 4 1", "stage-order"),
    ("bitonic-sort", "cmp 2 3", "cmp 4 5", "comparator-order"),
    ("bitonic-sort", "cmp 2 3", "swap 2 3", "compared"),
    ("bitonic-sort", "swap 2 3", "cmp 4 5", "settled"),
    ("batcher-merge", "stage 2 2", "stage 2 1", "stage-order"),
    ("batcher-merge", "cmp 2 3", "cmp 4 5", "comparator-order"),
    ("batcher-merge", "swap 4 5", "cmp 6 7", "settled"),
    ("library-sort", "rebalance", "cmp 1 0", "doubled"),
    ("library-sort", "cmp 2 4", "cmp 2 0", "halving"),
    ("library-sort", "cmp 2 0", "insert 2 2", "searched"),
    ("library-sort", "insert 8 6", "insert 8 7", "gap-middle"),
    ("library-sort", "insert 1 0", "insert 1 2", "place-found"),
    ("smoothsort", "fix 1", "add", "fix-order"),
    ("smoothsort", "swap 1 0", "add", "heaps"),
    ("smoothsort", "swap 2 1", "swap 2 0", "swap-places"),
    ("block-sort", "insert 2 1", "insert 3 1", "insert-order"),
    ("block-sort", "insert 3 1", "insert 3 2", "inserted"),
    ("block-sort", "merge 0 16 21", "merge 0 16 20", "merge-order"),
    ("block-sort", "rotate 2 16 17", "rotate 1 16 17", "rotation"),
    ("block-sort", "rotate 19 20 21", "done", "complete"),
    ("tournament-sort", "play 4 3", "play 4 2", "winner"),
    ("tournament-sort", "play 4 3", "play 3 1", "play-order"),
    ("tournament-sort", "out 3", "out 5", "champion"),
];

fn tasks() -> impl Iterator<Item = &'static dyn AnyTask> {
    TASKS.iter().chain(crate::tasks::non_comparison_sorting::TASKS).copied()
}

#[test]
fn wrong_lines_are_found_by_name() {
    for (slug, right, wrong, name) in WRONG {
        let task = tasks().find(|task| task.spec().slug == *slug).expect("listed");
        let input = serde_json::from_str(task.spec().page.example.input).expect("JSON");
        let mut machine = task.read_input(&input).expect("an example is valid").start();

        while machine.reference().is_some_and(|line| line != *right) {
            machine.follow_reference();
        }
        assert_eq!(machine.reference().as_deref(), Some(*right), "{slug}");

        // A refused line counts as well: it breaks `format`.
        drop(machine.propose(wrong));

        let found: Vec<_> = machine
            .violations(Kinds::WITHOUT_TRANSITION)
            .iter(task.spec())
            .map(|c| c.name)
            .collect();

        assert!(
            found.contains(name),
            "{slug}: {wrong} instead of {right} breaks {found:?}, not {name}"
        );
    }
}

/// Each line is judged, to the end of the longest traces.
#[test]

fn right_lines_break_nothing() {
    for (task, difficulty) in
        tasks().flat_map(|task| Difficulty::ALL.map(|difficulty| (task, difficulty)))
    {
        for seed in 0..2 {
            let mut machine = task.generate(difficulty, seed).start();
            while let Some(line) = machine.reference() {
                machine.propose(&line).expect("reference lines are legal");
                let found: Vec<_> =
                    machine.violations(Kinds::ALL).iter(task.spec()).map(|c| c.name).collect();
                assert!(
                    found.is_empty(),
                    "{} {difficulty} {seed}: {line} breaks {found:?}",
                    task.spec().slug
                );

                machine.commit();
            }
        }
    }
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[Fooling {
        task: "library-sort",
        input: r#"{"a":[5,5]}"#,
        lines: &["insert 0 0", "rebalance", "cmp 1 0", "insert 1 0", "done"],
        at: 3,
        constraint: "place-found",
    }]);
}

#[test]
fn a_search_beyond_the_elements_is_refused() {
    let problem = crate::tasks::find("library-sort")
        .expect("listed")
        .read_input(&serde_json::json!({"a": [3, 1, 2]}))
        .expect("valid");
    let mut machine = problem.start();
    machine.follow_reference();
    let state = machine.state();
    // After the first insertion: one element, and a search among it.
    assert_eq!((&state["count"], &state["lo"], &state["hi"]), (&1.into(), &0.into(), &1.into()));
    assert!(problem.machine_at(&state).is_ok());

    for field in ["lo", "hi"] {
        let mut wrong = state.clone();
        wrong[field] = 2.into();
        let error = problem.machine_at(&wrong).err().expect("refused").to_string();
        assert!(
            error.contains(&format!("state field `{field}`: must be at most `count`")),
            "{error}"
        );
    }
}
