//! Renders a template for every kind of turn, so that errors show before a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shown::Shown;
use super::templates::{Prompt, TemplateError, Templates};
use super::variables::{History, PromptContext};
use prime_bench::tasks::{self, Difficulty, Kind, Machine, Problem, Rule};
use prime_protocol::{Decision, Limits, Role, Score, Thresholds, Trajectory, Verdict};

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

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

/// The next line: the reference's, or any for a client's problem.
fn next_line(machine: &dyn Machine) -> String {
    machine.reference().unwrap_or_else(|| "a step".to_owned())
}

/// A trajectory with a committed step, a rejected line and feedback.
fn with_rejections(problem: &dyn Problem) -> Trajectory {
    let mut trajectory = Trajectory::new(problem.start(), &LIMITS);
    let first = next_line(trajectory.machine.as_ref());
    // If the first line ends the trace or is not applicable, the initial state will do.
    if trajectory.machine.propose(&first).is_ok() && !trajectory.machine.candidate_ends() {
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &LIMITS);
    }
    trajectory.settle("a wrong line", false, &verdict(), Decision::Backtrack, &LIMITS);
    trajectory.settle("a wrong line", false, &verdict(), Decision::Retry, &LIMITS);
    trajectory
}

/// The prompts of a fresh trajectory, and of one with a committed step and rejections.
fn render_for(
    prompt: &Prompt,
    problem: &dyn Problem,
    variables: &BTreeMap<String, String>,
) -> Result<[String; 2], TemplateError> {
    let rules: Vec<Rule> =
        problem.rules().into_iter().filter(|rule| rule.kind != Some(Kind::Format)).collect();

    let thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };

    let fresh = Trajectory::new(problem.start(), &LIMITS);
    let (clean, broken) = (Verdict::default(), verdict());

    let render = |trajectory: &Trajectory, verdict, history| {
        let action = next_line(trajectory.machine.as_ref());
        prompt.render(&PromptContext {
            is_held: history == History::None,
            // Only a template that shows examples pays for them.
            shown: Shown { examples: u32::from(history == History::None), ..Shown::default() },
            action: &action,
            rules: &rules,
            verdict: (prompt.role() == Role::Coordinator).then_some(verdict),
            thresholds: Some(thresholds),
            ..PromptContext::new(trajectory, history, variables)
        })
    };

    Ok([
        render(&fresh, &clean, History::None)?,
        render(&with_rejections(problem), &broken, History::Window(1))?,
    ])
}

/// An instance of every task and variant.
fn all_tasks() -> impl Iterator<Item = Arc<dyn Problem>> {
    tasks::all().chain(tasks::variants()).map(|task| task.generate(Difficulty::Easy, 1))
}

impl Templates {
    /// Renders a role's template for an instance of every task and for the clients' problems in
    /// `also`, with and without the optional parts of a turn. Takes about 100 ms.
    ///
    /// # Errors
    /// The first expression that cannot be rendered: template, line, variable.
    pub fn check(
        &self,
        name: &str,
        role: Role,
        variables: &BTreeMap<String, String>,
        also: &[Arc<dyn Problem>],
    ) -> Result<(), TemplateError> {
        let prompt = self.prompt(name, role)?;

        all_tasks()
            .chain(also.iter().map(Arc::clone))
            .try_for_each(|problem| render_for(&prompt, problem.as_ref(), variables).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use prime_bench::prompts::{Style, whole};
    use prime_bench::tasks::page::Page;
    use prime_problems::Custom;

    fn clients() -> Vec<Arc<dyn Problem>> {
        let stepwise = json!({"statement": "s", "steps": "stepwise", "constraints": [
            {"name": "polite", "severity": "major", "text": "Be polite."}]});
        let single = json!({"statement": "s", "answer": {"pattern": "[0-9]+"}});
        [stepwise, single]
            .iter()
            .map(|problem| Custom::read(problem).expect("a problem").problem())
            .collect()
    }

    fn check(text: &str, role: Role) -> Result<(), TemplateError> {
        let templates = Templates::with([("mine.j2".to_owned(), text.to_owned())])?;
        let variables = BTreeMap::from([("tone".to_owned(), "dry".to_owned())]);
        templates.check("mine.j2", role, &variables, &clients())
    }

    const BUILT_IN: [(&str, Role); 6] = [
        ("executor/compact.j2", Role::Executor),
        ("executor/complete.j2", Role::Executor),
        ("executor/step.j2", Role::Executor),
        ("verifier/check.j2", Role::Verifier),
        ("verifier/token.j2", Role::Verifier),
        ("coordinator/decide.j2", Role::Coordinator),
    ];

    /// Pieces of a text that are long enough to be recognised.
    fn sentences(text: &str) -> impl Iterator<Item = &str> {
        text.split('\n')
            .flat_map(|line| line.split(". "))
            .map(str::trim)
            .filter(|piece| piece.len() > 24)
    }

    /// Asserts that a prompt contains no words about the paper and no sentence of the page's note.
    fn assert_is_about_the_task(prompt: &str, page: &Page, name: &str) {
        let mut words = prompt.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
        let about = [
            "paper",
            "papers",
            "author",
            "authors",
            "arxiv",
            "appendix",
            "benchmark",
            "our",
            "ours",
            "note",
        ];
        let found = words.find(|word| about.contains(&word.as_str()));
        assert_eq!(found, None, "{name}: {prompt}");

        let quoted = sentences(page.note).find(|sentence| prompt.contains(sentence));
        assert_eq!(quoted, None, "{name}: {prompt}");
    }

    #[test]
    fn prompts_of_turns_say_nothing_about_the_paper() {
        for (name, role) in BUILT_IN {
            let prompt = Templates::default().prompt(name, role).expect("built in");
            for problem in all_tasks() {
                let rendered =
                    render_for(&prompt, problem.as_ref(), &BTreeMap::new()).expect("renders");
                for text in rendered {
                    assert_is_about_the_task(&text, problem.spec().page, name);
                }
            }
        }
    }

    #[test]
    fn prompts_of_whole_problems_say_nothing_about_the_paper_and_baselines_no_algorithm() {
        for problem in all_tasks() {
            let (slug, page) = (problem.spec().slug, problem.spec().page);
            for style in Style::NAMES.map(|name| name.parse::<Style>().expect("a style")) {
                if !style.suits(problem.spec().category) {
                    continue;
                }

                let prompt = whole(problem.as_ref(), style);
                assert_is_about_the_task(&prompt, page, &format!("{slug}: {style}"));

                let algorithm =
                    sentences(page.algorithm).find(|sentence| prompt.contains(sentence));
                assert_eq!(
                    algorithm.is_none(),
                    style == Style::Baseline,
                    "{slug}: {style}: {algorithm:?}: {prompt}"
                );
            }
        }
    }

    #[test]
    fn the_built_in_templates_render_for_every_turn() {
        for (name, role) in BUILT_IN {
            assert_eq!(
                Templates::default().check(name, role, &BTreeMap::new(), &clients()),
                Ok(()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_users_template_may_import_and_override_built_in_ones() {
        let uses = "{% from \"benchmark/parts.j2\" import actions -%}\n\
                    {{ actions(task) }}{{ variables.tone }}{{ state }}";
        assert_eq!(check(uses, Role::Executor), Ok(()));
        assert_eq!(check("{% include \"executor/step.j2\" %}", Role::Executor), Ok(()));

        let other =
            Templates::with([("executor/compact.j2".to_owned(), "{{ task.title }}!".to_owned())]);
        let prompt = other
            .expect("a template")
            .prompt("executor/compact.j2", Role::Executor)
            .expect("it is there");

        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 1);
        let trajectory = Trajectory::new(problem.start(), &LIMITS);

        let context =
            |history| prompt.render(&PromptContext::new(&trajectory, history, &BTreeMap::new()));
        assert_eq!(context(History::None), Ok("Bubble Sort!".to_owned()));
    }

    #[test]
    fn template_errors_are_found_before_a_run() {
        for (text, role, parts) in [
            ("a\n{{ tsk.title }}", Role::Executor, ["line 2", "no variable `tsk` for executors"]),
            ("{{ task.titel }}", Role::Executor, ["line 1", "there is no `task.titel`"]),
            (
                "\n\n{% if feedback %}{{ task.colour }}{% endif %}",
                Role::Executor,
                ["line 3", "`task.colour`"],
            ),
            (
                "{% for s in steps %}{{ s.line }}{% endfor %}",
                Role::Executor,
                ["line 1", "`s.line`"],
            ),
            (
                "{% if rejected %}{{ why }}{% endif %}",
                Role::Executor,
                ["line 1", "no variable `why`"],
            ),
            ("{{ variables.mood }}", Role::Executor, ["line 1", "`variables.mood`"]),
            (
                "{% if task.example.steps == 0 %}{{ task.only }}{% endif %}",
                Role::Executor,
                ["line 1", "`task.only`"],
            ),
            ("{{ after }}", Role::Executor, ["line 1", "no variable `after` for executors"]),
            (
                "{{ retries_max }}",
                Role::Verifier,
                ["line 1", "no variable `retries_max` for verifiers"],
            ),
            (
                "{{ is_held }}",
                Role::Coordinator,
                ["line 1", "no variable `is_held` for coordinators"],
            ),
            ("ok\n{% if task %}", Role::Executor, ["line 2", "syntax error"]),
            ("{{ view | shout }}", Role::Executor, ["line 1", "shout"]),
            ("{% include \"nowhere.j2\" %}", Role::Executor, ["line 1", "nowhere.j2"]),
        ] {
            let error = check(text, role).expect_err(text).to_string();
            for part in parts.into_iter().chain(["template `mine.j2`"]) {
                assert!(error.contains(part), "{part:?} is missing in {error:?} of {text:?}");
            }
        }

        let error = Templates::default()
            .prompt("executor/stpe.j2", Role::Executor)
            .err()
            .expect("misspelt")
            .to_string();
        assert!(error.contains("not found") && error.contains("executor/step.j2"), "{error}");
    }
}
