//! Prompts from the templates of `agents/`. Here: the compact step prompt of small models, and how their completions are
//! read. Training and serving share it, so that a model is asked in exactly the words that it was trained on.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, context};

use crate::tasks::Machine;
use crate::tasks::pattern;
use crate::tasks::spec::Spec;

pub mod benchmark;
mod check;
mod templates;
mod variables;

pub use templates::{Prompt, TemplateError, Templates};
pub use variables::{History, Scene, names};

const COMPACT: &str = "executor/compact.j2";
const TOKEN: &str = "verifier/token.j2";

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!(concat!("../../../agents/", $name)))),+] };
}

const BUILT_IN: [(&str, &str); 12] = built_in![
    "executor/compact.j2",
    "executor/step.j2",
    "benchmark/parts.j2",
    "benchmark/baseline.j2",
    "benchmark/structured.j2",
    "benchmark/sorting.j2",
    "benchmark/state-machine.j2",
    "benchmark/mathematical.j2",
    "verifier/check.j2",
    "verifier/token.j2",
    "verifier/likelihood.j2",
    "coordinator/decide.j2",
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_keep_trailing_newline(true);
    // Errors name the place; it costs nothing until there is one.
    templates.set_debug(true);
    for (name, text) in BUILT_IN {
        templates.add_template(name, text).expect("invariant: the built-in templates parse, as a test shows");
    }
    templates
});

/// What the executor sees: the task and a local view of the state, one line (`agents/executor/compact.j2`).
pub fn compact(machine: &dyn Machine) -> String {
    let variables = context! { task => context! { slug => machine.spec().slug }, view => machine.view() };
    let template = TEMPLATES.get_template(COMPACT).expect("invariant: the template was added");
    template.render(variables).expect("invariant: the built-in templates use these variables, as a test shows")
}

/// What a verifier of single tokens sees: task, view and the proposed line (`agents/verifier/token.j2`).
pub fn token_check(machine: &dyn Machine, line: &str) -> String {
    let task = context! { slug => machine.spec().slug };
    let template = TEMPLATES.get_template(TOKEN).expect("invariant: the template was added");
    let rendered = template.render(context! { task, view => machine.view(), action => line });
    rendered.expect("invariant: the built-in templates use these variables, as a test shows")
}

/// What a trained executor writes for the reference step: a derivation (where the task has one), then the action.
pub fn completion(machine: &dyn Machine) -> Option<String> {
    let action = machine.reference()?;
    Some(match machine.derivation() {
        Some(derivation) => format!("{derivation}\n{action}"),
        None => action,
    })
}

/// The action line of a completion: its last line that is not empty.
pub fn action_line(completion: &str) -> &str {
    completion.trim_end_matches(['\n', '\r']).rsplit('\n').next().unwrap_or("").trim_end_matches('\r')
}

/// The action line of a free answer: its last line that is not blank, without blanks and backquotes round it. A line that
/// only closes a block of code does not count.
pub fn last_line(answer: &str) -> &str {
    let bare = |line: &'_ str| -> bool { !line.trim().trim_matches('`').is_empty() };
    answer.lines().rev().find(|line| bare(line)).map_or("", |line| line.trim().trim_matches('`').trim())
}

/// The grammar of a completion: any lines, then one action line of the task.
pub fn grammar(spec: &Spec) -> String {
    format!("root ::= ([^\\n]* \"\\n\")? action\n{}", pattern::gbnf(spec.actions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{self, Difficulty};

    #[test]
    fn the_action_is_the_last_line() {
        assert_eq!(action_line("12 so 3\nmove 1 0 2"), "move 1 0 2");
        assert_eq!(action_line("done\r\n"), "done");
        assert_eq!(action_line(""), "");
    }

    #[test]
    fn a_view_shows_what_the_derivation_needs_and_fits_a_small_context() {
        for task in tasks::all() {
            let machine = task.generate(Difficulty::Hard, 9).start();
            // Only tasks with derivations have views made for small models.
            if machine.derivation().is_none() {
                continue;
            }
            let prompt = compact(machine.as_ref());
            let wanted = completion(machine.as_ref()).expect("a start has a next step");
            assert_eq!(prompt, format!("{} {}\n", task.spec().slug, machine.view()), "what the model was trained on");
            assert!(prompt.ends_with('\n') && prompt.len() + wanted.len() < 500, "{prompt}{wanted}");
            assert_eq!(action_line(&wanted), machine.reference().expect("a next step"));
        }
    }
}
