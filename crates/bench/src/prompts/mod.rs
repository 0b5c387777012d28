//! Whole-problem prompts for the benchmark: the paper's baseline, its structured prompt with
//! optional components, its templates by kind of task, one for environments that are stepped, and
//! the verifier's prompt (appendix, "Prompt Templates").

mod skeleton;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value as Variable, context};
use serde::Serialize;
use serde_json::Value;

use crate::tasks::page::{ActionPage, Example};
use crate::tasks::{Category, Constraint, Machine, Problem, Refusal, Spec};

/// The templates by name. Templates of agents may import them.
pub const TEMPLATES: [(&str, &str); 8] = [
    ("benchmark/parts.j2", include_str!("parts.j2")),
    ("benchmark/baseline.j2", include_str!("baseline.j2")),
    ("benchmark/structured.j2", include_str!("structured.j2")),
    ("benchmark/sorting.j2", include_str!("sorting.j2")),
    ("benchmark/state-machine.j2", include_str!("state-machine.j2")),
    ("benchmark/mathematical.j2", include_str!("mathematical.j2")),
    ("benchmark/turns.j2", include_str!("turns.j2")),
    ("verifier/check.j2", VERIFIER),
];

/// The paper's prompt for a verifier: one proposed step, each constraint to be marked.
pub const VERIFIER: &str = include_str!("check.j2");

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    // A misspelt variable fails a test instead of leaving a gap in a prompt.
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_keep_trailing_newline(true);
    for (name, text) in TEMPLATES {
        templates
            .add_template(name, text)
            .expect("invariant: the built-in templates parse, as a test shows");
    }
    templates
});

/// A style of whole-problem prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Only the problem.
    Baseline,
    /// The paper's PRIME prompt, with these components.
    Structured(Components),
    /// The paper's template for sorting.
    Sorting,
    /// The paper's template for automata and simulations.
    StateMachine,
    /// The paper's template for computations.
    Mathematical,
    /// For environments: one action a turn, and no answer in words.
    Turns,
}

/// The four components of the structured prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Components {
    /// The list of the task's constraints.
    pub constraints: bool,
    /// The instruction to verify each step.
    pub verification: bool,
    /// The worked example.
    pub examples: bool,
    /// The format of the output.
    pub format: bool,
}

impl Components {
    /// All four components.
    pub const ALL: Self =
        Self { constraints: true, verification: true, examples: true, format: true };
    /// The names of the components, as options spell them.
    pub const NAMES: [&'static str; 4] = ["constraints", "verification", "examples", "format"];

    /// Removes one component.
    ///
    /// # Errors
    /// There is no component of this name.
    pub fn without(mut self, name: &str) -> Result<Self, String> {
        match name {
            "constraints" => self.constraints = false,
            "verification" => self.verification = false,
            "examples" => self.examples = false,
            "format" => self.format = false,
            _ => return Err(format!("unknown component {name:?}: use {}", Self::NAMES.join(", "))),
        }
        Ok(self)
    }
}

impl Style {
    /// All styles; the structured one with all components.
    pub const ALL: [Self; 6] = [
        Self::Baseline,
        Self::Structured(Components::ALL),
        Self::Sorting,
        Self::StateMachine,
        Self::Mathematical,
        Self::Turns,
    ];
    /// The names of the styles, in the same order.
    pub const NAMES: [&'static str; 6] =
        ["baseline", "structured", "sorting", "state-machine", "mathematical", "turns"];

    /// The style's name, as options spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Structured(_) => "structured",
            Self::Sorting => "sorting",
            Self::StateMachine => "state-machine",
            Self::Mathematical => "mathematical",
            Self::Turns => "turns",
        }
    }

    /// Returns whether it asks for the whole trace and the answer in one reply.
    pub fn asks_for_all(self) -> bool {
        self != Self::Turns
    }

    /// Returns whether the style suits tasks of a category: the sorting template needs an array.
    pub fn suits(self, category: Category) -> bool {
        self != Self::Sorting || category.sorts()
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Style {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|style| style.name() == text)
            .ok_or_else(|| format!("unknown style {text:?}: use {}", Self::NAMES.join(", ")))
    }
}

/// The variable `task` of templates.
#[derive(Serialize)]
pub struct TaskView {
    slug: &'static str,
    title: &'static str,
    category: Category,
    problem: &'static str,
    algorithm: &'static str,
    step: &'static str,
    actions: &'static [ActionPage],
    constraints: &'static [Constraint],
    input: Vec<(&'static str, &'static str)>,
    answer: &'static [(&'static str, &'static str)],
    state: &'static [(&'static str, &'static str)],
    example: Example,
    /// The example's input as JSON text, without hidden fields.
    example_input: String,
}

/// An input without the fields that its task hides from executors.
pub fn visible(spec: &Spec, mut input: Value) -> Value {
    if let Some(fields) = input.as_object_mut() {
        fields.retain(|name, _| !spec.hidden.contains(&name.as_str()));
    }
    input
}

/// The view of a task that templates render.
pub fn view(spec: &'static Spec) -> TaskView {
    let page = spec.page;
    // Parsed only to leave out the hidden fields.
    let example = serde_json::from_str(page.example.input)
        .expect("invariant: examples are JSON, as a test shows");
    TaskView {
        slug: spec.slug,
        title: spec.title,
        category: spec.category,
        problem: page.problem,
        algorithm: page.algorithm.trim(),
        step: page.step,
        actions: page.actions,
        constraints: spec.constraints,
        input: page.input.iter().copied().filter(|(name, _)| !spec.hidden.contains(name)).collect(),
        answer: page.answer,
        state: page.state,
        example: page.example,
        example_input: visible(spec, example).to_string(),
    }
}

fn render(name: &str, variables: Variable) -> String {
    let template = ENVIRONMENT.get_template(name).expect("invariant: the template was added");
    template
        .render(variables)
        .expect("invariant: the built-in templates use these variables, as a test shows")
}

/// The prompt for a whole problem.
pub fn whole(problem: &dyn Problem, style: Style) -> String {
    skeleton::of(problem.spec(), style).filled(problem)
}

/// The prompt that asks a verifier to judge one action in a state.
///
/// # Errors
/// The action is not applicable, so there is no state after it.
pub fn verifier(machine: &dyn Machine, action: &str) -> Result<String, Refusal> {
    let mut after = machine.fork();
    after.replay(action)?;

    let json = |value: Value| value.to_string();
    Ok(render(
        "verifier/check.j2",
        context! {
            task => view(machine.spec()),
            input => json(machine.problem().input()),
            state => json(machine.state()),
            action,
            after => json(after.state()),
            ends => after.ended(),
            // The first one, `format`, holds for every action that can be applied.
            constraints => machine.spec().constraints[1..].iter().collect::<Vec<_>>(),
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tasks::{self, Difficulty};

    /// A prompt as the template itself renders it.
    fn rendered(problem: &dyn Problem, style: Style) -> String {
        let components =
            if let Style::Structured(components) = style { components } else { Components::ALL };
        let input = visible(problem.spec(), problem.input());

        let fields = input.as_object().expect("inputs are objects");
        let values: BTreeMap<&str, String> =
            fields.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();

        let variables = context! {
            task => view(problem.spec()),
            input => input.to_string(),
            state => problem.start().state().to_string(),
            values,
            length => fields.get("a").and_then(Value::as_array).map(Vec::len),
            with => components,
        };
        render(&format!("benchmark/{style}.j2"), variables)
    }

    #[test]
    fn a_prompt_is_what_its_template_renders() {
        for task in tasks::all() {
            for (name, index) in Style::NAMES.iter().flat_map(|name| [(name, 0), (name, 7)]) {
                let style: Style = name.parse().expect("a style");
                if style.suits(task.spec().category) {
                    let problem = task.generate(Difficulty::Easy, index);
                    assert_eq!(
                        whole(problem.as_ref(), style),
                        rendered(problem.as_ref(), style),
                        "{name}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_task_has_every_prompt() {
        for task in tasks::all() {
            let spec = task.spec();
            let problem = task.generate(Difficulty::Easy, 3);
            for name in Style::NAMES {
                let style: Style = name.parse().expect("a style");
                if !style.suits(spec.category) {
                    continue;
                }

                let prompt = whole(problem.as_ref(), style);
                assert!(prompt.contains(spec.title), "{}: {name}", spec.slug);
                assert!(!prompt.contains("\n\n\n"), "{}: {name}: {prompt}", spec.slug);
                for (field, _) in spec.page.answer.iter().filter(|_| style.asks_for_all()) {
                    assert!(prompt.contains(field), "{}: {name}: {field}", spec.slug);
                }
            }

            let start = problem.start();
            let action = start.reference().expect("a first step");
            let prompt = verifier(start.as_ref(), &action).expect("legal");
            assert!(
                prompt.contains(&format!("Action: {action}\n"))
                    && prompt.contains("Violation Score"),
                "{prompt}"
            );
        }
    }

    #[test]
    fn hidden_fields_are_in_no_executor_prompt() {
        let problem = tasks::find("blind-maze").expect("listed").generate(Difficulty::Easy, 3);
        for style in Style::ALL.into_iter().filter(|style| *style != Style::Sorting) {
            let prompt = whole(problem.as_ref(), style);
            assert!(
                !prompt.contains("\"passages\"") && !prompt.contains("passages ("),
                "{style}: {prompt}"
            );
            assert!(prompt.contains("goal"), "{style}: {prompt}");
        }
    }

    #[test]
    fn components_of_the_structured_prompt_are_independent() {
        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
        let heads =
            ["\nCONSTRAINTS:\n", "\nVERIFICATION PROCEDURE:\n", "\nEXAMPLES:\n", "<actions>"];
        for (off, name) in Components::NAMES.into_iter().enumerate() {
            let components = Components::ALL.without(name).expect("a component");
            let prompt = whole(problem.as_ref(), Style::Structured(components));
            for (place, head) in heads.into_iter().enumerate() {
                assert_eq!(
                    prompt.contains(head),
                    place != off,
                    "without {name}: {head:?} in\n{prompt}"
                );
            }
        }
        assert!(Components::ALL.without("colour").is_err());
    }
}
