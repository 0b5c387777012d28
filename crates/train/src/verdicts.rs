//! Training samples for a token verifier: each asks if a line is the right next step. Knows states,
//! prompts and the exact rule, but no models.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::mutations::{Neighbours, mutated};
use super::states::States;
use super::vocabulary::Vocabulary;
use super::{Data, Sample, Samples, TrainError, words};
use prime_bench::judge::is_right;
use prime_bench::tasks::{Kind, Kinds, Machine, TaskRng};

/// The verifier's tokens for a right and for a wrong step.
pub const RIGHT: &str = "1";
pub const WRONG: &str = "0";

/// Maximum number of steps to advance from the drawn state, so that there are steps before it.
const BEFORE_MAX: u64 = 3;

/// Number of following steps whose lines serve as wrong ones.
const AFTER_MAX: usize = 8;

/// Maximum number of lines tried at a state until one is wrong.
const ATTEMPTS_MAX: usize = 200;

/// Draws steps at states of reference traces, about half of them wrong.
///
/// A right step is the reference step or, in a search, sometimes another choice that is as good
/// ([`is_right`]). A wrong step is a mutated line of the trace that can be executed and is wrong by
/// the exact rule. Choices of a search that break no constraint but lead to a dead end or a detour
/// are not drawn: recognising them takes the search, which one token cannot do.
pub struct Verdicts {
    states: States,
    vocabulary: Vocabulary,
}

impl Verdicts {
    /// Finds the tasks that the data names, and their vocabulary.
    ///
    /// # Errors
    /// If there is no task with a name, or a listed word cannot be a token.
    pub fn new(data: &Data) -> Result<Self, TrainError> {
        let mut verdicts = Self { states: States::new(data)?, vocabulary: Vocabulary::default() };
        verdicts.vocabulary = words::vocabulary(&mut verdicts, &data.words)?;
        Ok(verdicts)
    }
}

/// Returns whether a line can be executed and is definitely wrong. It becomes the machine's
/// candidate.
fn is_wrong(machine: &mut dyn Machine, line: &str) -> bool {
    if machine.propose(line).is_err() || machine.violations(Kinds::ALL).is_empty() {
        return false;
    }

    let checked = Kinds::from_iter([Kind::Format, Kind::Invariant, Kind::Terminal]);
    let is_choice =
        || machine.choices().is_some_and(|choices| choices.iter().any(|choice| choice == line));

    !machine.violations(checked).is_empty() || !is_choice()
}

/// Advances the machine by up to [`BEFORE_MAX`] steps, and returns the steps around its new state.
fn walked(machine: &mut dyn Machine, rng: &mut TaskRng) -> Neighbours {
    let mut before = Vec::new();
    let mut reference = machine.reference().expect("invariant: the state drawn has a next step");

    for _ in 0..rng.below(BEFORE_MAX + 1) {
        let mut next = machine.fork();
        next.follow_reference();
        // The machine stays before its last step, so that there is a reference.
        let Some(step) = next.reference() else { break };
        machine.follow_reference();
        before.push(std::mem::replace(&mut reference, step));
    }

    let mut ahead = machine.fork();
    ahead.follow_reference();
    let mut after = Vec::new();
    while after.len() < AFTER_MAX
        && let Some(step) = ahead.reference()
    {
        after.push(step);
        ahead.follow_reference();
    }

    Neighbours { reference, before, after }
}

/// A right line: usually the reference step.
fn right_line(machine: &mut dyn Machine, reference: &str, rng: &mut TaskRng) -> String {
    if rng.chance(1, 4)
        && let Some(choices) = machine.choices().filter(|choices| !choices.is_empty())
    {
        let choice = &choices[rng.index(choices.len())];
        if machine.propose(choice).is_ok() && is_right(machine, choice) {
            return choice.clone();
        }
    }
    reference.to_owned()
}

impl Samples for Verdicts {
    fn tasks(&self) -> &[String] {
        self.states.names()
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let mut rng = TaskRng::new(rng.next_u64());
        let mut machine = self.states.draw(task, held_out, &mut rng);
        let machine = machine.as_mut();

        let lines = walked(machine, &mut rng);
        let forms = machine.spec().actions;

        let wrong = if rng.chance(1, 2) {
            let mut tried = (0..ATTEMPTS_MAX).filter_map(|_| mutated(&lines, forms, &mut rng));
            tried.find(|line| is_wrong(machine, line))
        } else {
            None
        };

        // If no wrong line was found, the sample has a right one.
        let (line, verdict) = match wrong {
            Some(line) => (line, WRONG),
            None => (right_line(machine, &lines.reference, &mut rng), RIGHT),
        };

        Sample::written(task, prime_lessons::token_check(machine, &line), verdict)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const TASKS: [&str; 5] =
        ["bubble-sort", "tower-of-hanoi", "n-queens", "dfa-simulation", "long-division"];

    fn data() -> Data {
        Data {
            tasks: TASKS.map(str::to_owned).to_vec(),
            benchmark_inputs: vec!["tower-of-hanoi".to_owned()],
            ..Data::default()
        }
    }

    #[test]
    fn half_of_the_lines_are_wrong_and_each_follows_its_view() {
        let mut verdicts = Verdicts::new(&data()).expect("listed");
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (task, slug) in TASKS.iter().enumerate() {
            let samples: Vec<_> = (0..200).map(|_| verdicts.draw(task, false, &mut rng)).collect();
            let wrong = samples.iter().filter(|sample| sample.completion == WRONG).count();
            assert!((70..=130).contains(&wrong), "{slug}: {wrong} of 200");

            for sample in &samples {
                let lines: Vec<_> = sample.prompt.lines().collect();
                assert!(
                    lines.len() == 2 && lines[0].starts_with(&format!("check {slug} ")),
                    "{}",
                    sample.prompt
                );
                assert!(
                    sample.prompt.ends_with('\n') && sample.prompt.len() < 400,
                    "{}",
                    sample.prompt
                );
            }
        }
    }

    #[test]
    fn labels_are_those_of_the_judge() {
        let states = States::new(&data()).expect("listed");
        let mut rng = TaskRng::new(8);
        let mut wrong = 0;
        for (task, slug) in TASKS.iter().enumerate() {
            for _ in 0..40 {
                let mut machine = states.draw(task, true, &mut rng);
                let lines = walked(machine.as_mut(), &mut rng);
                let right = right_line(machine.as_mut(), &lines.reference, &mut rng);
                let actions = machine.spec().actions;

                let line = (0..ATTEMPTS_MAX)
                    .filter_map(|_| mutated(&lines, actions, &mut rng))
                    .find(|line| is_wrong(machine.as_mut(), line));

                let mut judged = |line: &str| {
                    machine.propose(line).expect("it can be executed");
                    is_right(machine.as_ref(), line)
                };

                assert!(judged(&right), "{slug}: {right}");
                if let Some(line) = line {
                    assert!(!judged(&line), "{slug}: {line}");
                    wrong += 1;
                }
            }
        }
        assert!(wrong > 190, "{wrong} of 200");
    }

    #[test]
    fn a_choice_of_a_search_that_breaks_no_constraint_is_not_wrong() {
        let input = serde_json::json!({"n": 4, "order": [0, 1, 2, 3]});
        let mut machine = prime_bench::tasks::find("n-queens")
            .expect("listed")
            .read_input(&input)
            .expect("valid")
            .start();
        // No solution begins at column 3 in this order, but no constraint says so.
        assert!(!is_wrong(machine.as_mut(), "place 0 3"));
        assert!(is_wrong(machine.as_mut(), "place 1 3"), "another row is not a choice");

        machine.follow_reference();
        for (line, wrong) in
            [("place 1 1", true), ("place 1 2", false), ("place 1 3", false), ("back 0", true)]
        {
            assert_eq!(is_wrong(machine.as_mut(), line), wrong, "{line}");
        }

        assert!(
            !is_wrong(machine.as_mut(), "back 9"),
            "the machine refuses what cannot be executed"
        );
    }
}
