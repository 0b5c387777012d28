//! An executor that errs once, invisibly to the checks of its steps: only the end shows it.

use proptest::prelude::*;

use super::properties::{plan, simulate_judged};
use super::*;
use prime_bench::judge::soundness::small_inputs;
use prime_bench::tasks::{self, Kind, Kinds, TaskRng};

/// Sorts whose lines, with the end alone checked, may leave out an exchange.
const TASKS: [&str; 4] = ["bubble-sort", "gnome-sort", "selection-sort", "insertion-sort"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_search_goes_back_to_a_fault_that_only_the_end_shows(
        seed in any::<u64>(), task in 0..TASKS.len(), input in 0..8usize, at in 0.0f64..1.0
    ) {
        let inputs = small_inputs(tasks::find(TASKS[task]).expect("listed"), 1);
        let problem = &inputs[input % inputs.len()];
        let steps = problem.reference().steps;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss,
            clippy::cast_precision_loss, reason = "a step of a short trace")]
        let faulty = (at * steps as f64) as usize;
        let end = Kinds::from_iter([Kind::Format, Kind::Terminal]);

        let mut has_erred = false;
        let propose = |_, trajectory: &Trajectory, rng: &mut TaskRng| {
            let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
            if has_erred || trajectory.stack.depth() != faulty {
                return (right, None);
            }
            has_erred = true;

            // A wrong line that can be applied and does not end the trace.
            let wrong = ["swap 0 1", "swap 1 2", "cmp 0 1", "cmp 1 2", "pass"];
            let applies = |line: &&&str| {
                let mut machine = trajectory.machine.fork();
                **line != right && machine.propose(line).is_ok() && !machine.candidate_ends()
            };
            let fitting: Vec<&&str> = wrong.iter().filter(applies).collect();
            match fitting.len() {
                0 => (right, None),
                several => ((*fitting[rng.index(several)]).to_owned(), None),
            }
        };

        let limits = Limits { pops_max: 64, ..Limits::DEFAULT };
        let plan = RunPlan { limits, max_rounds: 1, ..plan(1, 8) };
        let outcome = simulate_judged(problem, plan, end, &mut TaskRng::new(seed), propose);

        prop_assert!(outcome.answer.is_some(), "{outcome:?}");
        let answer = outcome.answer.expect("it goes back to before the fault");
        // The end does not look at the counts of the answer.
        prop_assert_eq!(&answer["sorted"], &problem.reference().answer["sorted"]);
        prop_assert!(outcome.proposals <= 6 * steps + 200, "{} of {steps}", outcome.proposals);
    }
}
