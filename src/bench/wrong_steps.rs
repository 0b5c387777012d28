//! Steps with labels: right ones from reference traces, and wrong ones made of them. What is wrong is what the exact
//! verifier rejects.

use super::corruption::other_number;
use crate::agents::{ExactVerifier, Verifier as _};
use crate::protocol::{Limits, Score, Trajectory};
use crate::tasks::sampling::state_on_trace;
use crate::tasks::{AnyTask, Difficulty, Draw, Machine};

/// Draws of a mutation before the next one is tried.
const DRAWS: usize = 8;

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The step of the reference.
    Right,
    /// Wrong, but an action that can be carried out.
    Applicable,
    /// No action, or one that cannot be carried out.
    Garbage,
}

/// A proposed step at its state: the machine holds it as its candidate, or has refused it.
pub struct Labelled {
    pub trajectory: Trajectory,
    pub line: String,
    pub label: Label,
}

/// How a right step is made a wrong one.
#[derive(Clone, Copy)]
enum Mutation {
    /// The step after it: one was left out.
    Early,
    /// The same step once more, after it was taken.
    Repeated,
    /// One of its numbers one higher or lower.
    Changed,
    /// The page's example of some action.
    OtherAction,
    /// Another choice, where the task is a search.
    OtherChoice,
}

const MUTATIONS: [Mutation; 5] =
    [Mutation::Early, Mutation::Repeated, Mutation::Changed, Mutation::OtherAction, Mutation::OtherChoice];

impl Mutation {
    /// The state in which the wrong step is proposed, and its line. `None` where there is nothing to mutate.
    fn of(self, machine: &dyn Machine, right: &str, draw: &mut Draw) -> Option<(Box<dyn Machine>, String)> {
        let mut after = machine.fork();
        let line = match self {
            Self::Early => {
                after.follow_reference();
                return Some((machine.fork(), after.reference()?));
            }
            Self::Repeated => {
                after.follow_reference();
                return (!after.ended()).then(|| (after, right.to_owned()));
            }
            Self::Changed => other_number(right, draw)?,
            Self::OtherAction => {
                let actions = machine.spec().page.actions;
                actions.get(draw.index(actions.len().max(1)))?.example.to_owned()
            }
            Self::OtherChoice => {
                let choices = machine.choices()?;
                choices.get(draw.index(choices.len().max(1)))?.clone()
            }
        };
        Some((after, line))
    }
}

/// Lines that nobody can read as the right one.
fn garbage(right: &str, draw: &mut Draw) -> Vec<String> {
    let mut lines = vec![
        "no action".to_owned(),
        format!("The next step is {right}."),
        format!("x{right}"),
        format!("{right} {right}"),
    ];
    lines.rotate_left(draw.index(4));
    lines
}

fn labelled(machine: Box<dyn Machine>, line: String, is_right: bool) -> Labelled {
    let limits = Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1 };
    let mut trajectory = Trajectory::new(machine, &limits);
    let label = match (trajectory.machine.propose(&line), is_right) {
        (Ok(()), true) => Label::Right,
        (Ok(()), false) => Label::Applicable,
        (Err(_), _) => Label::Garbage,
    };
    Labelled { trajectory, line, label }
}

/// Whether the exact verifier rejects it.
async fn is_wrong(step: &Labelled) -> bool {
    let verdict = ExactVerifier.judge(&step.trajectory, &step.line).await;
    verdict.is_ok_and(|verdict| verdict.score > Score::ZERO)
}

/// A wrong step that can be carried out; `None` where no mutation gives one.
async fn applicable(machine: &dyn Machine, right: &str, draw: &mut Draw) -> Option<Labelled> {
    let first = draw.index(MUTATIONS.len());
    for mutation in (0..MUTATIONS.len()).map(|at| MUTATIONS[(first + at) % MUTATIONS.len()]) {
        for _ in 0..DRAWS {
            let Some((machine, line)) = mutation.of(machine, right, draw) else { break };
            let step = labelled(machine, line, false);
            if step.label == Label::Applicable && is_wrong(&step).await {
                return Some(step);
            }
        }
    }
    None
}

/// For each of `count` states of reference traces, under the thousand base seeds from `base_seed` on: the right step, a
/// wrong one that can be carried out, where there is one, and one that cannot.
pub async fn labelled_steps(task: &dyn AnyTask, difficulty: Difficulty, count: u32, base_seed: u64) -> Vec<Labelled> {
    let mut draw = Draw::new(base_seed);
    let mut steps = Vec::new();
    for _ in 0..count {
        let machine = state_on_trace(task, difficulty, base_seed, &mut draw);
        let Some(right) = machine.reference() else { continue };
        steps.extend(applicable(machine.as_ref(), &right, &mut draw).await);
        let refused = garbage(&right, &mut draw).into_iter().map(|line| labelled(machine.fork(), line, false));
        steps.extend(refused.into_iter().find(|step| step.label == Label::Garbage));
        steps.push(labelled(machine, right, true));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks;

    #[tokio::test]
    async fn every_task_has_right_wrong_and_unreadable_steps() {
        for task in tasks::all() {
            let steps = labelled_steps(task, Difficulty::Easy, 4, 7).await;
            let of = |label| steps.iter().filter(|step| step.label == label).count();
            let slug = task.spec().slug;
            assert_eq!((of(Label::Right), of(Label::Garbage)), (4, 4), "{slug}");
            assert!((1..=4).contains(&of(Label::Applicable)), "{slug}: {}", of(Label::Applicable));
            for step in &steps {
                assert_eq!(is_wrong(step).await, step.label != Label::Right, "{slug}: {}", step.line);
                let mut machine = step.trajectory.machine.fork();
                assert_eq!(machine.propose(&step.line).is_ok(), step.label != Label::Garbage, "{slug}: {}", step.line);
            }
        }
    }

    #[tokio::test]
    async fn the_same_seed_draws_the_same_steps() {
        let task = tasks::find("bubble-sort").unwrap();
        let lines = async |seed| {
            let steps = labelled_steps(task, Difficulty::Easy, 8, seed).await;
            steps.into_iter().map(|step| step.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(7).await, lines(7).await);
        assert_ne!(lines(7).await, lines(8).await);
    }
}
