//! The compact prompts of small models, and the format of their completions.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, context};
use prime_bench::tasks::Machine;

use super::{derivation, lesson, view};

const COMPACT: &str = "executor/compact.j2";
const TOKEN: &str = "verifier/token.j2";

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_keep_trailing_newline(true);

    for (name, text) in [
        (COMPACT, include_str!("../agents/executor/compact.j2")),
        (TOKEN, include_str!("../agents/verifier/token.j2")),
    ] {
        templates
            .add_template(name, text)
            .expect("invariant: the built-in templates parse, as a test shows");
    }

    templates
});

/// The executor's prompt: the task and the view of the state, one line
/// (`agents/executor/compact.j2`).
pub fn compact(machine: &dyn Machine) -> String {
    let variables =
        context! { task => context! { slug => machine.spec().slug }, view => view(machine) };

    let template = TEMPLATES.get_template(COMPACT).expect("invariant: the template was added");
    template
        .render(variables)
        .expect("invariant: the built-in templates use these variables, as a test shows")
}

/// The prompt of a single-token verifier: task, view and the proposed line
/// (`agents/verifier/token.j2`).
pub fn token_check(machine: &dyn Machine, line: &str) -> String {
    let task = context! { slug => machine.spec().slug };
    let template = TEMPLATES.get_template(TOKEN).expect("invariant: the template was added");
    let rendered = template.render(context! { task, view => view(machine), action => line });
    rendered.expect("invariant: the built-in templates use these variables, as a test shows")
}

/// The completion of a trained executor for the reference step: the lesson's derivation, then the
/// action. `None` at the end of a trace, and where the lesson's derivation is longer than it
/// permits.
pub fn completion(machine: &dyn Machine) -> Option<String> {
    let action = machine.reference()?;

    let spec = machine.spec();
    // Only lessons whose derivations may be too long have a limit; a test keeps the others short.
    let bytes_max =
        lesson(spec.slug).filter(|lesson| lesson.may_be_too_long()).map(|lesson| lesson.bytes_max);

    let completion = match derivation(machine) {
        Some(derivation) if !derivation.is_empty() => format!("{derivation}\n{action}"),
        None if bytes_max.is_some() => return None,
        _ => action,
    };

    // A prompt is the slug and the view, with a space and the end of the line.
    let bytes = || spec.slug.len() + view(machine).len() + 2 + completion.len();
    bytes_max.is_none_or(|most| bytes() <= most).then_some(completion)
}

/// Completions for other steps that are as good as the reference step, where the task's lesson
/// knows some, so that a model can explore.
pub fn alternatives(machine: &dyn Machine) -> Vec<String> {
    lesson(machine.spec().slug).map_or_else(Vec::new, |lesson| (lesson.alternatives)(machine))
}

/// The action line of a completion: its last line that is not empty.
pub fn action_line(completion: &str) -> &str {
    completion
        .trim_end_matches(['\n', '\r'])
        .rsplit('\n')
        .next()
        .unwrap_or("")
        .trim_end_matches('\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};

    #[test]
    fn the_action_is_the_last_line() {
        assert_eq!(action_line("12 so 3\nmove 1 0 2"), "move 1 0 2");
        assert_eq!(action_line("done\r\n"), "done");
        assert_eq!(action_line(""), "");
    }

    #[test]
    fn alternatives_are_other_steps_that_no_constraint_forbids() {
        let mut machine =
            tasks::find("n-queens").expect("a task").generate(Difficulty::Easy, 5).start();
        let first = alternatives(machine.as_ref());

        let columns = machine.choices().expect("columns").len();
        assert_eq!(first.len(), columns - 1, "every column of an empty board is free");

        machine.follow_reference();
        let reference = machine.reference().expect("a step");

        let others = alternatives(machine.as_ref());
        assert!(
            !others.is_empty() && others.len() < columns - 1,
            "the queen attacks some: {others:?}"
        );

        for other in &others {
            let line = action_line(other);
            assert_ne!(line, reference);
            let mut copy = machine.fork();
            copy.propose(line).expect("an action");
            assert!(copy.violations(tasks::Kinds::WITHOUT_TRANSITION).is_empty(), "{line}");
        }
    }

    #[test]
    fn alternatives_in_24_game_keep_the_target_within_reach() {
        let problem = tasks::find("24-game").expect("a task").generate(Difficulty::Easy, 3);
        let mut machine = problem.start();
        let mut seen = 0;

        while machine.reference().is_some() {
            for other in alternatives(machine.as_ref()) {
                let mut copy = machine.fork();
                copy.propose(action_line(&other)).expect("an action");
                copy.commit();
                while copy.follow_reference() {}
                let answer = copy.answer().expect("it has ended");
                assert!(problem.accepts(&answer), "{other}: {answer}");
                seen += 1;
            }
            machine.follow_reference();
        }

        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn every_task_has_a_lesson() {
        let without: Vec<_> = tasks::all()
            .map(|task| task.spec().slug)
            .filter(|slug| !crate::has_lesson(slug))
            .collect();
        assert_eq!(without, Vec::<&str>::new());
    }
}
