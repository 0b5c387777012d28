//! What a verifier of single tokens learns: whether a line is the right next step. Knows states, prompts and the exact
//! rule; nothing of models.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::mutations::{Neighbours, mutated};
use super::states::States;
use super::{Data, Sample, Samples};
use prime_bench::judge::is_right;
use prime_bench::tasks::{Kind, Kinds, Machine, TaskRng, UnknownTask};

/// The token of a right step, and that of a wrong one, as the verifier reads them.
pub const RIGHT: &str = "1";
pub const WRONG: &str = "0";

/// Steps that are walked on from the state drawn, so that there are steps before it.
const BEFORE_MAX: u64 = 3;
/// Steps behind the state whose lines are taken as wrong ones.
const AFTER_MAX: usize = 8;
/// Lines that are tried at a state until one is wrong.
const ATTEMPTS_MAX: usize = 200;

/// Draws steps at states of reference traces, about half of them wrong.
///
/// A right one is the reference step; where the task is a search, now and then another choice that is as good
/// ([`is_right`]). A wrong one can be carried out, is a mutation of lines of the trace, and is wrong by the exact
/// rule. One kind of line is neither: a choice of a search that breaks no constraint and yet is not as good, because it
/// leads into a dead end or round about. To see that takes the search, which one token cannot do; such lines are not drawn.
pub struct Verdicts(States);

impl Verdicts {
    /// # Errors
    /// When a name is no task's.
    pub fn new(data: &Data) -> Result<Self, UnknownTask> {
        States::new(data).map(Self)
    }
}

/// Whether a line that can be carried out is wrong beyond doubt. It becomes the candidate.
fn is_wrong(machine: &mut dyn Machine, line: &str) -> bool {
    if machine.propose(line).is_err() || machine.violations(Kinds::ALL).is_empty() {
        return false;
    }
    let checked = Kinds::from_iter([Kind::Format, Kind::Invariant, Kind::Terminal]);
    let is_choice = || machine.choices().is_some_and(|choices| choices.iter().any(|choice| choice == line));
    !machine.violations(checked).is_empty() || !is_choice()
}

/// The steps round a state, which the machine walks on to: up to [`BEFORE_MAX`] steps on.
fn walked(machine: &mut dyn Machine, rng: &mut TaskRng) -> Neighbours {
    let mut before = Vec::new();
    let mut reference = machine.reference().expect("invariant: the state drawn has a next step");
    for _ in 0..draw.below(BEFORE_MAX + 1) {
        let mut next = machine.fork();
        next.follow_reference();
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

/// A right line: mostly the reference step.
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
        self.0.names()
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let mut rng = TaskRng::new(rng.next_u64());
        let mut machine = self.0.draw(task, held_out, &mut rng);
        let machine = machine.as_mut();
        let lines = walked(machine, &mut rng);
        let forms = machine.spec().actions;
        let wrong = if rng.chance(1, 2) {
            let mut tried = (0..ATTEMPTS_MAX).filter_map(|_| mutated(&lines, forms, &mut rng));
            tried.find(|line| is_wrong(machine, line))
        } else {
            None
        };
        // Where no wrong line was found, the right one is as good a sample.
        let (line, verdict) = match wrong {
            Some(line) => (line, WRONG),
            None => (right_line(machine, &lines.reference, &mut rng), RIGHT),
        };
        Sample { task, prompt: prime_lessons::token_check(machine, &line), completion: verdict.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const TASKS: [&str; 5] = ["bubble-sort", "tower-of-hanoi", "n-queens", "dfa-simulation", "long-division"];

    fn data() -> Data {
        Data { tasks: TASKS.map(str::to_owned).to_vec(), ..Data::default() }
    }

    #[test]
    fn half_of_the_lines_are_wrong_and_every_line_stands_after_its_view() {
        let mut verdicts = Verdicts::new(&data()).expect("listed");
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (task, slug) in TASKS.iter().enumerate() {
            let samples: Vec<_> = (0..200).map(|_| verdicts.draw(task, false, &mut rng)).collect();
            let wrong = samples.iter().filter(|sample| sample.completion == WRONG).count();
            assert!((70..=130).contains(&wrong), "{slug}: {wrong} of 200");
            for sample in &samples {
                let lines: Vec<_> = sample.prompt.lines().collect();
                assert!(lines.len() == 2 && lines[0].starts_with(&format!("check {slug} ")), "{}", sample.prompt);
                assert!(sample.prompt.ends_with('\n') && sample.prompt.len() < 400, "{}", sample.prompt);
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
                    machine.propose(line).expect("it can be carried out");
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
    fn a_choice_of_a_search_that_breaks_nothing_is_not_called_wrong() {
        let input = serde_json::json!({"n": 4, "order": [0, 1, 2, 3]});
        let mut machine =
            prime_bench::tasks::find("n-queens").expect("listed").read_input(&input).expect("valid").start();
        // No solution begins at column 3 in this order, but no constraint says so.
        assert!(!is_wrong(machine.as_mut(), "place 0 3"));
        assert!(is_wrong(machine.as_mut(), "place 1 3"), "another row is no choice");
        machine.follow_reference();
        for (line, wrong) in [("place 1 1", true), ("place 1 2", false), ("place 1 3", false), ("back 0", true)] {
            assert_eq!(is_wrong(machine.as_mut(), line), wrong, "{line}");
        }
        assert!(!is_wrong(machine.as_mut(), "back 9"), "what cannot be carried out is the machine's to refuse");
    }
}
