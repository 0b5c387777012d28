use super::*;
use crate::tasks::suite::suite;
use crate::tasks::{AnyTask, Kinds};

suite! { the_sound_kinds_let_no_wrong_answer_pass }

/// Walks per task in the test suite; `prime-agents bench corrupt --adversarial` takes more.
const WALKS: u64 = 240;
/// Small inputs whose states are searched, and the lines that are tried for each input.
const INPUTS: usize = 6;
const TRIES_MAX: u64 = 200_000;

fn the_sound_kinds_let_no_wrong_answer_pass(task: &'static dyn AnyTask) {
    let kinds = task.spec().sound;
    for problem in small_inputs(task, 1).iter().take(INPUTS) {
        let found = exhaust(problem, kinds, TRIES_MAX);
        // The reference trace, at least, is one that ends, unless there is nothing to do.
        let is_found = found.ends > 0 || problem.start().ended();
        assert!(is_found || !found.is_complete, "{}", problem.input());
        assert!(found.fooled.is_none(), "{:?}", found.fooled);
    }

    for seed in [1, 2] {
        let row = attack(task, &Attack { kinds, walks: WALKS / 2, lines_max: 1_500, seed });
        assert_eq!(row.wrong, 0, "{:?}", row.shortest);
    }
}

/// The searches find known errors: with the form of lines alone, nearly every task can be led to a
/// wrong answer.
#[test]
fn the_searches_refute_kinds_that_are_not_sound() {
    let format = Kinds::from_iter([crate::tasks::Kind::Format]);
    for slug in ["turing-machine", "dependency-sat", "gcd-euclidean", "n-queens", "unification"] {
        let task = crate::tasks::find(slug).expect("a task");

        let row = attack(task, &Attack { kinds: format, walks: 400, lines_max: 1_500, seed: 3 });

        assert!(row.wrong > 0, "{slug}: {row:?}");
        let fooled = row.shortest.expect("there is one");
        let mut machine = task.read_input(&fooled.input).expect("its input").start();
        for line in &fooled.lines {
            machine.replay(line).expect("its lines apply");
        }
        assert_eq!(machine.answer(), Some(fooled.answer));
    }
}

/// Lines with lists of numbers and with fractions are made too.
#[test]
fn the_exhaustive_search_makes_lines_of_every_kind_of_field() {
    let format = Kinds::from_iter([crate::tasks::Kind::Format]);
    for slug in ["nfa-simulation", "continued-fraction", "gaussian-elimination"] {
        let task = crate::tasks::find(slug).expect("a task");
        let example = &small_inputs(task, 1)[0];

        let found = exhaust(example, format, TRIES_MAX);

        let fooled = found.fooled.unwrap_or_else(|| panic!("{slug}: {} states", found.states));
        let mut machine = example.start();
        let deviates = |line: &String| {
            let deviates = machine.reference().as_ref() != Some(line);
            machine.replay(line).expect("its lines apply");
            deviates
        };
        let deviations: Vec<bool> = fooled.lines.iter().map(deviates).collect();
        let first = deviations.iter().position(|deviates| *deviates);
        assert_eq!(first, Some(fooled.at), "{slug}: the first line that is not the algorithm's");
        assert_eq!(machine.answer(), Some(fooled.answer), "{slug}");
    }
}
