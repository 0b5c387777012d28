//! Labelled single steps at states of reference traces.

use super::mutations::{Mutation, garbage};
use super::{KEPT, Origin, StepError, instance, step_error};
use crate::judge::is_right;
use crate::judge::soundness::clean_deviation;
use crate::tasks::{AnyTask, Difficulty, InstanceId, Machine, TaskRng};

/// Lines tried per mutation: each costs a fork of the machine and a verdict.
const LINES_MAX: usize = 32;
/// Instances with longer reference traces give no steps.
const STEPS_MAX: u64 = 1 << 21;

/// A proposed step at its state.
pub struct LabelledStep {
    /// The instance.
    pub id: InstanceId,
    /// Where the line comes from.
    pub origin: Origin,
    /// Steps before it.
    pub step: u64,
    /// Holds the line as its candidate, or has refused it.
    pub machine: Box<dyn Machine>,
    /// The proposed line.
    pub line: String,
    /// True if the line can be carried out.
    pub applies: bool,
    /// Its error; `None` for a right step.
    pub error: Option<StepError>,
}

/// A state of a reference trace.
struct State {
    id: InstanceId,
    machine: Box<dyn Machine>,
    step: u64,
    previous: Option<String>,
}

impl State {
    /// A random state of an instance's reference trace; `None` if the trace has no step.
    fn drawn(id: InstanceId, rng: &mut TaskRng) -> Option<Self> {
        let problem = id.problem();
        let steps = problem.reference_steps(STEPS_MAX).filter(|steps| *steps > 0)?;
        let step = rng.below(steps);

        let mut machine = problem.start();
        let mut previous = None;
        for place in 0..step {
            if place + 1 == step {
                previous = machine.reference();
            }
            machine.follow_reference();
        }
        Some(Self { id, machine, step, previous })
    }

    /// A line proposed here.
    fn proposed(&self, line: String, origin: Origin) -> LabelledStep {
        let mut machine = self.machine.fork();
        let refusal = machine.propose(&line).err();
        let applies = refusal.is_none();
        let previous = self.previous.as_deref();
        let error = step_error(machine.as_ref(), &line, refusal, self.step, previous);
        LabelledStep { id: self.id, origin, step: self.step, machine, line, applies, error }
    }

    /// A wrong step that can be carried out: here, or after the right one where that is repeated.
    fn mutated(&self, right: &str, rng: &mut TaskRng) -> Option<LabelledStep> {
        let mut mutations = Mutation::ALL;
        rng.shuffle(&mut mutations);

        for mutation in mutations {
            let (machine, mut lines) = mutation.of(self.machine.as_ref(), right);
            // No verifier is asked about a line after the end.
            if machine.ended() {
                continue;
            }

            let is_later = matches!(mutation, Mutation::Repeated);
            let state = Self {
                id: self.id,
                machine,
                step: self.step + u64::from(is_later),
                previous: if is_later { Some(right.to_owned()) } else { self.previous.clone() },
            };

            rng.shuffle(&mut lines);
            let steps = lines.into_iter().take(LINES_MAX);
            let wrong = steps
                .map(|line| state.proposed(line, Origin::Random))
                .find(|step| step.applies && step.error.is_some());
            if wrong.is_some() {
                return wrong;
            }
        }
        None
    }

    /// A wrong step that as many constraints as possible let through.
    fn adversarial(&self, rng: &mut TaskRng) -> Option<LabelledStep> {
        KEPT.iter().find_map(|kept| {
            let line = clean_deviation(self.machine.as_ref(), kept(), rng, |machine, line| {
                !is_right(machine, line)
            })?;
            Some(self.proposed(line, Origin::Adversarial))
        })
    }
}

/// For each of `count` instances of a level, at a random state of its reference trace: the right
/// step, a random and an adversarial wrong one that can be carried out, if there are such, and one
/// that cannot.
pub fn labelled_steps(
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    count: u32,
    base_seed: u64,
) -> Vec<LabelledStep> {
    let mut rng = TaskRng::new(base_seed);
    let mut steps = Vec::new();
    for place in 0..count {
        let id = instance(task, difficulty, base_seed, place);
        let Some(state) = State::drawn(id, &mut rng) else { continue };
        let Some(right) = state.machine.reference() else { continue };

        steps.push(state.proposed(right.clone(), Origin::Reference));
        steps.extend(state.mutated(&right, &mut rng));
        let refused = garbage(&right, &mut rng);
        let refused = refused.into_iter().map(|line| state.proposed(line, Origin::Random));
        steps.extend(refused.into_iter().find(|step| !step.applies));
        steps.extend(state.adversarial(&mut rng));
    }
    steps
}
