//! Tries a template on every kind of turn that there is, before a run does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::templates::{Prompt, TemplateError, Templates};
use super::variables::{History, Scene};
use crate::protocol::{Decision, Limits, Role, Score, Thresholds, Trajectory, Verdict};
use crate::tasks::{self, Difficulty, Kind, Machine, Problem, Rule};

const LIMITS: Limits = Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8 };

fn verdict() -> Verdict {
    let feedback = Some("the reason".to_owned());
    Verdict {
        score: Score::from_tenths(2),
        violations: vec!["a-constraint".into()],
        feedback,
        needs_review: true,
        ..Verdict::default()
    }
}

/// The next line of a problem: the algorithm's, or for a client's problem any.
fn next(machine: &dyn Machine) -> String {
    machine.reference().unwrap_or_else(|| "a step".to_owned())
}

/// A trajectory with a committed step, a rejected line and feedback.
fn troubled(problem: &dyn Problem) -> Trajectory {
    let mut trajectory = Trajectory::new(problem.start(), &LIMITS);
    let first = next(trajectory.machine.as_ref());
    // A first line that ends the trace, or cannot be carried out, leaves the start as good a place.
    if trajectory.machine.propose(&first).is_ok() && !trajectory.machine.candidate_ends() {
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &LIMITS);
    }
    trajectory.settle("a wrong line", false, &verdict(), Decision::Backtrack, &LIMITS);
    trajectory.settle("a wrong line", false, &verdict(), Decision::Retry, &LIMITS);
    trajectory
}

fn try_on(prompt: &Prompt, problem: &dyn Problem, variables: &BTreeMap<String, String>) -> Result<(), TemplateError> {
    let rules: Vec<Rule> = problem.rules().into_iter().filter(|rule| rule.kind != Some(Kind::Format)).collect();
    let thresholds = Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };
    let fresh = Trajectory::new(problem.start(), &LIMITS);
    let (clean, broken) = (Verdict::default(), verdict());
    for (trajectory, verdict, history) in
        [(&fresh, &clean, History::None), (&troubled(problem), &broken, History::Window(1))]
    {
        let action = next(trajectory.machine.as_ref());
        prompt.render(&Scene {
            is_held: history == History::None,
            action: &action,
            rules: &rules,
            verdict: (prompt.role() == Role::Coordinator).then_some(verdict),
            thresholds: Some(thresholds),
            ..Scene::new(trajectory, history, variables)
        })?;
    }
    Ok(())
}

impl Templates {
    /// Renders a template of a role with an instance of every task, with `also`, such as a client's problem, and with
    /// and without what a turn may lack: whatever a run could find missing is found here. Takes some 100 ms.
    ///
    /// # Errors
    /// The first place that cannot be rendered: template, line, variable.
    pub fn check(
        &self,
        name: &str,
        role: Role,
        variables: &BTreeMap<String, String>,
        also: &[Arc<dyn Problem>],
    ) -> Result<(), TemplateError> {
        let prompt = self.prompt(name, role)?;
        let tasks = tasks::all().chain(tasks::variants()).map(|task| task.generate(Difficulty::Easy, 1));
        tasks.chain(also.iter().map(Arc::clone)).try_for_each(|problem| try_on(&prompt, problem.as_ref(), variables))
    }
}
