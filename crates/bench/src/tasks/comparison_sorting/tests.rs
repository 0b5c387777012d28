//! Right traces of any array, and wrong lines: one for each constraint, and all at every step of a
//! few traces.

use serde_json::json;

use super::TASKS;
use crate::tasks::{AnyTask, Kind, Kinds, Machine, TaskRng, array};

fn start(task: &dyn AnyTask, a: &[i64]) -> Box<dyn Machine> {
    task.read_input(&json!({ "a": a })).unwrap_or_else(|error| panic!("{error}")).start()
}

fn broken(machine: &dyn Machine) -> Vec<&'static str> {
    machine.violations(Kinds::ALL).iter(machine.spec()).map(|constraint| constraint.name).collect()
}

/// Arrays that the benchmark does not draw: two values, sorted and equal ones, odd lengths.
#[test]
fn right_traces_of_any_array_break_nothing() {
    let mut rng = TaskRng::new(7);
    for task in TASKS {
        for round in 0..60 {
            let n = 2 + round % 9;
            let max = if round % 2 == 0 { 2 } else { 9 };
            let a = array::uniform(n, 0, max, &mut rng);
            let mut machine = start(*task, &a);
            while let Some(line) = machine.reference() {
                machine.propose(&line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
                assert!(
                    broken(machine.as_ref()).is_empty(),
                    "{} of {a:?}: {line} breaks {:?}",
                    task.spec().slug,
                    broken(machine.as_ref())
                );
                machine.commit();
            }
            assert!(machine.ended(), "{} of {a:?}", task.spec().slug);
        }
    }
}

/// Constraint, array, lines of the right trace before the wrong line, and this line.
type WrongLine = (&'static str, &'static [i64], usize, &'static str);

const WRONG_LINES: &[(&str, &[WrongLine])] = &[
    (
        "bubble-sort",
        &[
            ("inversions", &[2, 3, 1, 2], 1, "swap 0 1"),
            ("tail", &[3, 1, 2], 3, "pass"),
            ("adjacent", &[2, 1], 0, "cmp 0 0"),
            ("counts", &[2, 1], 0, "swap 0 1"),
            ("scan", &[3, 1, 2], 0, "cmp 1 2"),
            ("whole-scan", &[3, 1, 2], 5, "done"),
            ("compared", &[2, 3, 1, 2], 1, "swap 1 2"),
            ("in-order", &[3, 1, 2], 1, "cmp 1 2"),
            ("passes", &[2, 1], 2, "pass"),
            ("comparisons", &[3, 1, 2], 5, "done"),
            ("sorted", &[2, 3, 1, 2], 5, "done"),
        ],
    ),
    (
        "selection-sort",
        &[
            ("prefix", &[2, 1], 1, "pass"),
            ("m-range", &[2, 1], 4, "min 0"),
            ("counts", &[2, 1], 1, "cmp 1 0"),
            ("scan", &[3, 1, 2], 1, "cmp 1 0"),
            ("least", &[2, 1], 0, "cmp 1 1"),
            ("min-order", &[2, 1], 0, "min 0"),
            ("swap-places", &[2, 1], 2, "swap 1 1"),
            ("whole-scan", &[3, 1, 2], 2, "swap 0 1"),
            ("comparisons", &[2, 1], 0, "pass"),
            ("sorted", &[2, 1], 0, "done"),
            ("passes", &[2, 1], 0, "done"),
        ],
    ),
    (
        "insertion-sort",
        &[
            ("permutation", &[2, 1], 3, "take 1"),
            ("prefix", &[2, 1], 2, "put 1"),
            ("hole", &[2, 1], 0, "take 0"),
            ("counts", &[2, 1], 1, "shift 0"),
            ("take", &[2, 1], 1, "take 1"),
            ("scan", &[2, 1], 1, "cmp 1"),
            ("shift-order", &[3, 1, 2], 8, "shift 1"),
            ("put", &[2, 3, 1, 2], 1, "put 1"),
            ("sorted", &[2, 1], 0, "done"),
            ("all-put", &[2, 1], 3, "done"),
        ],
    ),
    (
        "shell-sort",
        &[
            ("gaps", &[2, 1], 0, "gap 0"),
            ("stride", &[2, 1], 2, "cmp 1 1"),
            ("swap-order", &[2, 3, 1, 2], 3, "swap 0 1"),
            ("counts", &[2, 1], 1, "swap 0 1"),
            ("walk", &[2, 1], 1, "take 0"),
            ("compared", &[2, 3, 1, 2], 3, "swap 1 2"),
            ("in-place", &[3, 1, 2], 2, "take 2"),
            ("whole-pass", &[4, 3, 1, 2, 1], 15, "done"),
            ("gap-sorted", &[4, 3, 1, 2, 1], 2, "gap 1"),
            ("sorted", &[4, 3, 1, 2, 1], 4, "done"),
            ("last-gap", &[4, 3, 1, 2, 1], 4, "done"),
        ],
    ),
    (
        "merge-sort",
        &[
            ("buffer", &[2, 1], 4, "split 0 2"),
            ("bounds", &[3, 5, 1, 4, 2, 1], 6, "take 3"),
            ("halves", &[4, 3, 1, 2, 1], 0, "merge 0 5"),
            ("recursion", &[2, 1], 1, "split 1 2"),
            ("split-order", &[2, 1], 1, "split 0 2"),
            ("merge-order", &[2, 1], 0, "merge 0 2"),
            ("heads", &[2, 1], 2, "cmp 0 0"),
            ("lesser", &[2, 1], 1, "take 0"),
            ("sorted", &[2, 1], 0, "done"),
            ("whole", &[2, 1], 0, "done"),
        ],
    ),
    (
        "quick-sort",
        &[
            ("pivots", &[3, 1, 2], 3, "pivot 0"),
            ("small", &[2, 1], 2, "swap 0 0"),
            ("stack", &[4, 3, 1, 2, 1], 14, "pivot 4"),
            ("counts", &[2, 1], 2, "cmp 0 0"),
            ("order", &[2, 3, 1, 2], 6, "done"),
            ("scan", &[2, 1], 1, "cmp 0 0"),
            ("large", &[4, 3, 1, 2, 1], 8, "cmp 2 4"),
            ("compared", &[2, 1], 3, "swap 0 0"),
            ("swap-order", &[2, 3, 1, 2], 8, "swap 1 2"),
            ("pivot-place", &[2, 3, 1, 2], 8, "pivot 3"),
            ("whole-scan", &[2, 1], 1, "pivot 0"),
            ("sorted", &[2, 1], 0, "done"),
        ],
    ),
    (
        "heap-sort",
        &[
            ("heap-order", &[2, 1], 2, "swap 0 1"),
            ("tail", &[2, 1], 3, "swap 1 0"),
            ("node", &[2, 1], 3, "sift 1"),
            ("counts", &[2, 1], 0, "swap 0 1"),
            ("roots", &[2, 1], 0, "sift 1"),
            ("children", &[2, 1], 0, "cmp 0 0"),
            ("swap-order", &[2, 1], 2, "swap 0 0"),
            ("sifted", &[2, 1], 1, "extract 1"),
            ("sorted", &[2, 1], 2, "done"),
            ("extracted", &[4, 3, 1, 2, 1], 21, "done"),
        ],
    ),
    (
        "tree-sort",
        &[
            ("search-tree", &[2, 1], 0, "right 1 0"),
            ("attached", &[2, 1], 1, "left 1 0"),
            ("out", &[2, 1], 0, "visit 0"),
            ("counts", &[2, 1], 3, "cmp 0 0"),
            ("insert-order", &[2, 1], 0, "insert 1"),
            ("path", &[2, 1], 0, "cmp 0 0"),
            ("side", &[2, 1], 0, "left 0 1"),
            ("visit-order", &[2, 1], 2, "visit 0"),
            ("sorted", &[2, 1], 0, "done"),
        ],
    ),
    (
        "cocktail-sort",
        &[
            ("inversions", &[2, 3, 1, 2], 1, "swap 0 1"),
            ("ends", &[3, 1, 2], 3, "pass"),
            ("adjacent", &[2, 1], 0, "cmp 0 0"),
            ("counts", &[2, 1], 0, "swap 0 1"),
            ("scan", &[3, 1, 2], 0, "cmp 1 2"),
            ("whole-scan", &[3, 1, 2], 5, "done"),
            ("compared", &[2, 3, 1, 2], 1, "swap 1 2"),
            ("in-order", &[3, 1, 2], 1, "cmp 1 2"),
            ("passes", &[2, 1], 2, "pass"),
            ("comparisons", &[3, 1, 2], 5, "done"),
            ("sorted", &[2, 1], 1, "done"),
        ],
    ),
    (
        "comb-sort",
        &[
            ("stride", &[2, 1], 1, "cmp 0 0"),
            ("swap-order", &[2, 1], 5, "swap 0 1"),
            ("gaps", &[2, 1], 0, "gap 0"),
            ("counts", &[2, 1], 1, "swap 0 1"),
            ("scan", &[2, 1], 3, "cmp 0 1"),
            ("whole-scan", &[2, 1], 4, "done"),
            ("compared", &[2, 3, 1, 2], 3, "swap 0 2"),
            ("in-order", &[3, 1, 2], 2, "gap 1"),
            ("passes", &[2, 1], 3, "done"),
            ("comparisons", &[2, 1], 4, "done"),
            ("sorted", &[2, 1], 2, "done"),
        ],
    ),
    (
        "gnome-sort",
        &[
            ("inversions", &[2, 1], 3, "swap 0 1"),
            ("adjacent", &[2, 1], 0, "cmp 0 0"),
            ("swap-order", &[2, 1], 3, "swap 0 1"),
            ("counts", &[2, 1], 0, "swap 0 1"),
            ("walk", &[2, 1], 2, "done"),
            ("compared", &[3, 1, 2], 3, "swap 1 2"),
            ("in-order", &[3, 1, 2], 1, "cmp 1 2"),
            ("sorted", &[2, 1], 0, "done"),
        ],
    ),
    (
        "odd-even-sort",
        &[
            ("inversions", &[3, 1, 2], 1, "swap 1 2"),
            ("adjacent", &[2, 1], 1, "cmp 0 0"),
            ("parity", &[2, 1], 0, "cmp 0 1"),
            ("counts", &[2, 1], 1, "swap 0 1"),
            ("scan", &[2, 1], 3, "cmp 0 1"),
            ("whole-scan", &[3, 1, 2], 0, "phase"),
            ("compared", &[3, 1, 2], 2, "swap 0 1"),
            ("in-order", &[2, 3, 1, 2], 1, "phase"),
            ("phases", &[2, 1], 3, "done"),
            ("comparisons", &[3, 1, 2], 0, "phase"),
            ("sorted", &[2, 1], 0, "done"),
        ],
    ),
    (
        "pancake-sort",
        &[
            ("suffix", &[2, 1], 1, "pass"),
            ("m-range", &[2, 1], 3, "max 1"),
            ("flips", &[2, 1], 0, "flip 0"),
            ("counts", &[2, 1], 1, "cmp 1 0"),
            ("scan", &[3, 1, 2], 0, "cmp 2 0"),
            ("greatest", &[2, 1], 0, "cmp 1 1"),
            ("max-order", &[2, 1], 0, "max 0"),
            ("flip-order", &[2, 1], 0, "flip 2"),
            ("whole-scan", &[2, 3, 1, 2], 9, "pass"),
            ("comparisons", &[2, 3, 1, 2], 7, "pass"),
            ("sorted", &[2, 1], 0, "done"),
            ("passes", &[2, 1], 2, "done"),
        ],
    ),
    (
        "cycle-sort",
        &[
            ("permutation", &[2, 1], 3, "take 0"),
            ("prefix", &[3, 1, 2], 3, "take 1"),
            ("final-place", &[3, 1, 2], 3, "put 1"),
            ("counts", &[2, 1], 2, "put 0"),
            ("writes", &[3, 1, 2], 12, "put 1"),
            ("take", &[2, 1], 1, "take 0"),
            ("scan", &[2, 1], 1, "cmp 0"),
            ("whole-scan", &[2, 1], 1, "put 1"),
            ("first-free", &[2, 3, 1, 2], 4, "put 2"),
            ("sorted", &[2, 1], 2, "done"),
            ("all-taken", &[2, 1], 3, "done"),
        ],
    ),
    (
        "stooge-sort",
        &[
            ("inversions", &[3, 1, 2], 5, "swap 1 2"),
            ("swap-order", &[4, 3, 1, 2, 1], 3, "swap 0 3"),
            ("counts", &[2, 1], 0, "swap 0 1"),
            ("compared", &[3, 1, 2], 1, "swap 0 1"),
            ("in-order", &[3, 1, 2], 1, "cmp 0 1"),
            ("sorted", &[2, 1], 0, "done"),
            ("empty-stack", &[3, 1, 2], 4, "done"),
        ],
    ),
];

/// Constraints that hold after any line, since every effect preserves them: only a submitted state
/// can break them.
const PRESERVED: [(&str, &[&str]); 4] = [
    (
        "permutation",
        &[
            "bubble-sort",
            "selection-sort",
            "shell-sort",
            "merge-sort",
            "quick-sort",
            "heap-sort",
            "cocktail-sort",
            "comb-sort",
            "gnome-sort",
            "odd-even-sort",
            "pancake-sort",
            "stooge-sort",
        ],
    ),
    ("selected", &["selection-sort"]),
    ("counts", &["merge-sort"]),
    ("stack", &["stooge-sort"]),
];

#[test]
fn each_constraint_names_a_wrong_line() {
    for task in TASKS {
        let spec = task.spec();
        let (_, wrong_lines) =
            WRONG_LINES.iter().find(|(slug, _)| *slug == spec.slug).expect("listed");
        for (name, a, at, line) in *wrong_lines {
            let mut machine = start(*task, a);

            for _ in 0..*at {
                assert!(machine.follow_reference(), "{} {name}", spec.slug);
            }

            machine
                .propose(line)
                .unwrap_or_else(|refusal| panic!("{} {name}: {refusal}", spec.slug));

            let found = broken(machine.as_ref());
            assert!(
                found.contains(name),
                "{} of {a:?}: {line} after {at} lines breaks {found:?}",
                spec.slug
            );
        }

        for constraint in
            spec.constraints.iter().filter(|c| matches!(c.kind, Kind::Invariant | Kind::Terminal))
        {
            let preserved = PRESERVED
                .iter()
                .any(|(name, slugs)| *name == constraint.name && slugs.contains(&spec.slug));
            let shown = wrong_lines.iter().any(|(name, ..)| *name == constraint.name);
            assert!(preserved != shown, "{}: {}", spec.slug, constraint.name);
        }
    }
}

/// All lines of a form with numbers up to `most`.
fn lines_of(form: &str, most: usize) -> Vec<String> {
    form.split(' ').fold(vec![String::new()], |lines, word| {
        let words: Vec<String> = if word.starts_with('<') {
            (0..=most).map(|x| x.to_string()).collect()
        } else {
            vec![word.to_owned()]
        };

        let extended = |line: &String| -> Vec<String> {
            words.iter().map(|word| format!("{line} {word}").trim_start().to_owned()).collect()
        };

        lines.iter().flat_map(extended).collect()
    })
}

/// A wrong line breaks more than the transition, at every step of a right trace.
#[test]
fn wrong_lines_are_caught_without_the_transition() {
    let mut rng = TaskRng::new(11);
    for task in TASKS {
        for n in [2, 3, 5, 6, 8] {
            let a = array::uniform(n, 0, 6, &mut rng);
            let mut machine = start(*task, &a);
            let lines: Vec<String> =
                task.spec().actions.iter().flat_map(|form| lines_of(form, n)).collect();

            while let Some(right) = machine.reference() {
                for line in lines.iter().filter(|line| **line != right) {
                    if machine.propose(line).is_ok() {
                        let found = machine.violations(Kinds::WITHOUT_TRANSITION);
                        let place = || {
                            format!(
                                "{} of {a:?}: {line} for {right} in {}",
                                task.spec().slug,
                                machine.state()
                            )
                        };
                        assert!(!found.is_empty(), "{}", place());
                    }
                }

                machine.replay(&right).expect("the right line is legal");
            }
        }
    }
}
