//! The executor's view of a problem (`agents/executor/problem.j2`).

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, context};

use super::definition::{Definition, LineForm, StepMode};

const NAME: &str = "executor/problem.j2";

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::SemiStrict);

    let text = include_str!("../agents/executor/problem.j2");
    templates
        .add_template(NAME, text)
        .expect("invariant: the built-in template parses, as a test shows");

    templates
});

/// The problem, the steps so far, and what to write next.
pub fn view(definition: &Definition, steps: &[&str]) -> String {
    let constraints = definition.constraints.iter().map(|constraint| {
        let meaning = constraint.check.as_ref().or(constraint.text.as_ref());
        context! { name => constraint.name, severity => constraint.severity, meaning }
    });
    let form = |form: &Option<LineForm>| match form {
        None => context! {},
        Some(LineForm::Pattern(pattern)) => context! { pattern },
        Some(LineForm::Schema(schema)) => context! { schema => schema.to_string() },
    };

    let variables = context! {
        statement => definition.statement,
        input => definition.input.to_string(),
        constraints => constraints.collect::<Vec<_>>(),
        answer => form(&definition.answer),
        step => form(&definition.step),
        lines_left => definition.max_steps.map(|most| most.saturating_sub(steps.len() as u64)),
        stepwise => definition.steps == StepMode::Stepwise,
        steps,
    };

    let template = TEMPLATES.get_template(NAME).expect("invariant: the template was added");
    template
        .render(variables)
        .expect("invariant: the built-in template uses these variables, as a test shows")
}
