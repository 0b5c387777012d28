//! Tries a template on every kind of turn that there is, before a run does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::templates::{Prompt, TemplateError, Templates};
use super::variables::{History, Scene};
use prime_bench::tasks::{self, Difficulty, Kind, Machine, Problem, Rule};
use prime_protocol::{Decision, Limits, Role, Score, Thresholds, Trajectory, Verdict};

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use prime_problems::Custom;

    fn clients() -> Vec<Arc<dyn Problem>> {
        let stepwise = json!({"statement": "s", "steps": "stepwise", "constraints": [
            {"name": "polite", "severity": "major", "text": "Be polite."}]});
        let single = json!({"statement": "s", "answer": {"pattern": "[0-9]+"}});
        [stepwise, single].iter().map(|problem| Custom::read(problem).expect("a problem").problem()).collect()
    }

    fn check(text: &str, role: Role) -> Result<(), TemplateError> {
        let templates = Templates::with([("mine.j2".to_owned(), text.to_owned())])?;
        let variables = BTreeMap::from([("tone".to_owned(), "dry".to_owned())]);
        templates.check("mine.j2", role, &variables, &clients())
    }

    #[test]
    fn the_built_in_templates_can_be_used_everywhere() {
        for (name, role) in [
            ("executor/compact.j2", Role::Executor),
            ("executor/step.j2", Role::Executor),
            ("verifier/check.j2", Role::Verifier),
            ("verifier/token.j2", Role::Verifier),
            ("coordinator/decide.j2", Role::Coordinator),
        ] {
            assert_eq!(Templates::default().check(name, role, &BTreeMap::new(), &clients()), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_user_s_text_may_use_the_built_in_ones_and_stand_in_for_them() {
        let uses =
            "{% from \"benchmark/parts.j2\" import actions -%}\n{{ actions(task) }}{{ variables.tone }}{{ state }}";
        assert_eq!(check(uses, Role::Executor), Ok(()));
        assert_eq!(check("{% include \"executor/step.j2\" %}", Role::Executor), Ok(()));
        let other = Templates::with([("executor/compact.j2".to_owned(), "{{ task.title }}!".to_owned())]);
        let prompt = other.expect("a template").prompt("executor/compact.j2", Role::Executor).expect("it is there");
        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 1);
        let trajectory = Trajectory::new(problem.start(), &LIMITS);
        let scene = |history| prompt.render(&Scene::new(&trajectory, history, &BTreeMap::new()));
        assert_eq!(scene(History::None), Ok("Bubble Sort!".to_owned()));
    }

    #[test]
    fn what_is_wrong_with_a_template_is_found_before_a_run() {
        for (text, role, parts) in [
            ("a\n{{ tsk.title }}", Role::Executor, ["line 2", "no variable `tsk` for executors"]),
            ("{{ task.titel }}", Role::Executor, ["line 1", "there is no `task.titel`"]),
            ("\n\n{% if feedback %}{{ task.colour }}{% endif %}", Role::Executor, ["line 3", "`task.colour`"]),
            ("{% for s in steps %}{{ s.line }}{% endfor %}", Role::Executor, ["line 1", "`s.line`"]),
            ("{% if rejected %}{{ why }}{% endif %}", Role::Executor, ["line 1", "no variable `why`"]),
            ("{{ variables.mood }}", Role::Executor, ["line 1", "`variables.mood`"]),
            ("{% if task.example.steps == 0 %}{{ task.only }}{% endif %}", Role::Executor, ["line 1", "`task.only`"]),
            ("{{ after }}", Role::Executor, ["line 1", "no variable `after` for executors"]),
            ("{{ retries_max }}", Role::Verifier, ["line 1", "no variable `retries_max` for verifiers"]),
            ("{{ is_held }}", Role::Coordinator, ["line 1", "no variable `is_held` for coordinators"]),
            ("ok\n{% if task %}", Role::Executor, ["line 2", "syntax error"]),
            ("{{ view | shout }}", Role::Executor, ["line 1", "shout"]),
            ("{% include \"nowhere.j2\" %}", Role::Executor, ["line 1", "nowhere.j2"]),
        ] {
            let error = check(text, role).expect_err(text).to_string();
            for part in parts.into_iter().chain(["template `mine.j2`"]) {
                assert!(error.contains(part), "{part:?} is missing in {error:?} of {text:?}");
            }
        }
        let error =
            Templates::default().prompt("executor/stpe.j2", Role::Executor).err().expect("misspelt").to_string();
        assert!(error.contains("there is none of this name") && error.contains("executor/step.j2"), "{error}");
    }
}
