//! What a program declares about its task in its answer to the handshake, as the constant part that
//! every task has.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::Rule;
use super::form;
use super::limits::{
    ACTIONS_MAX, CONSTRAINTS_MAX, DECLARATIONS_BYTES_MAX, NAME_BYTES_MAX, STATEMENT_BYTES_MAX,
    TEXT_BYTES_MAX,
};
use prime_bench::tasks::page::{ActionPage, Example, Page};
use prime_bench::tasks::spec::PaperFigures;
use prime_bench::tasks::{Category, Constraint, Kind, Kinds, Severity, Spec, find};
use prime_settings::is_name;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: String,
    #[serde(default)]
    title: String,
    statement: String,
    #[serde(default)]
    step: String,
    #[serde(default)]
    actions: Vec<Action>,
    #[serde(default)]
    constraints: Vec<DeclaredConstraint>,
    /// Fields and their meanings.
    #[serde(default)]
    input: BTreeMap<String, String>,
    #[serde(default)]
    state: BTreeMap<String, String>,
    #[serde(default)]
    answer: BTreeMap<String, String>,
    /// An example of an input.
    example: Option<Map<String, Value>>,
}

/// A form of action lines, alone or with a description.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a form, or a table with `form`, `line`, `effect`, `example`")]
enum Action {
    Form(String),
    Described(Described),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    form: String,
    #[serde(default)]
    line: String,
    #[serde(default)]
    effect: String,
    #[serde(default)]
    example: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredConstraint {
    name: String,
    #[serde(default = "invariant")]
    kind: Kind,
    severity: Severity,
    #[serde(default)]
    meaning: String,
}

fn invariant() -> Kind {
    Kind::Invariant
}

/// The form of every line that can be printed.
const ANY_LINE: &str = "<[ -~\u{a0}-\u{10ffff}]+>";

/// The constraints that every program's task has: of the line, and of the step.
const OWN: [Constraint; 2] = [
    Constraint {
        name: "format",
        kind: Kind::Format,
        severity: Severity::Critical,
        meaning: "the line is an action that can be applied here",
    },
    Constraint {
        name: "step",
        kind: Kind::Invariant,
        severity: Severity::Critical,
        meaning: "the task's program finds nothing wrong with the step",
    },
];

/// Checks a short text that people, models and terminals are shown.
fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.len() > bytes_max {
        return Err(format!("{what} has {} bytes; write at most {bytes_max}", text.len()));
    }
    match text.chars().find(|c| prime_printable::is_escaped(*c)) {
        Some(c) => Err(format!("{what} has the character {} in it", c.escape_unicode())),
        None => Ok(()),
    }
}

/// Checks the name of a constraint.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    check_text("its name", name, NAME_BYTES_MAX)?;
    if name.is_empty() || name.trim() != name || name.contains(['\n', '\t']) {
        return Err(format!("{name:?} is not a name: write one without blanks round it"));
    }
    Ok(())
}

fn check(declared: &Declaration) -> Result<(), String> {
    if !is_name(&declared.name) {
        return Err(format!(
            "`name` is {:?}; write up to 64 lower-case letters, digits, `-` and `_`",
            declared.name
        ));
    }
    if declared.statement.trim().is_empty() {
        return Err("`statement` is empty: write what is to be done".to_owned());
    }
    check_text("`statement`", &declared.statement, STATEMENT_BYTES_MAX)?;
    check_text("`title`", &declared.title, TEXT_BYTES_MAX)?;
    check_text("`step`", &declared.step, TEXT_BYTES_MAX)?;

    let fields = [&declared.input, &declared.state, &declared.answer];
    for (name, meaning) in fields.into_iter().flatten() {
        check_text("the name of a field", name, NAME_BYTES_MAX)?;
        check_text("the meaning of a field", meaning, TEXT_BYTES_MAX)?;
    }

    if declared.actions.len() > ACTIONS_MAX {
        let count = declared.actions.len();
        return Err(format!("there are {count} `actions`; write at most {ACTIONS_MAX}"));
    }
    for (at, action) in declared.actions.iter().enumerate() {
        let form = match action {
            Action::Form(form) => form,
            Action::Described(Described { form, line, effect, example }) => {
                for text in [line, effect, example] {
                    check_text(&format!("`actions[{at}]`"), text, TEXT_BYTES_MAX)?;
                }
                form
            }
        };
        if let Some(fault) = form::fault(form) {
            return Err(format!("`actions[{at}]`: {fault}"));
        }
    }

    if declared.constraints.len() > CONSTRAINTS_MAX {
        let count = declared.constraints.len();
        return Err(format!("there are {count} `constraints`; write at most {CONSTRAINTS_MAX}"));
    }
    for (at, constraint) in declared.constraints.iter().enumerate() {
        let at = |fault: String| format!("`constraints[{at}]`: {fault}");
        check_name(&constraint.name).map_err(at)?;
        check_text("`meaning`", &constraint.meaning, TEXT_BYTES_MAX).map_err(at)?;
        let is_own = OWN.iter().any(|own| own.name == constraint.name);
        let same = declared.constraints.iter().filter(|other| other.name == constraint.name);
        if is_own || same.count() > 1 {
            return Err(at(format!("the name {:?} is taken", constraint.name)));
        }
    }
    Ok(())
}

/// The name that a program declares, which its task has unless the configuration gives another.
///
/// # Errors
/// What is wrong with the declaration.
pub(super) fn name_of(declared: &Value) -> Result<String, String> {
    Ok(read(declared)?.name)
}

/// The parts of a declaration that matter before the task is run.
pub(super) struct Glance {
    pub name: String,
    /// Its example, if it declares one.
    pub example: Option<Value>,
    constraints: Vec<DeclaredConstraint>,
}

impl Glance {
    /// # Errors
    /// What is wrong with the declaration.
    pub fn of(declared: &Value) -> Result<Self, String> {
        let Declaration { name, example, constraints, .. } = read(declared)?;
        Ok(Self { name, example: example.map(Value::Object), constraints })
    }

    /// The constraint of this name.
    pub fn rule(&self, name: &str) -> Option<Rule<'_>> {
        let declared = self.constraints.iter().find(|constraint| constraint.name == name)?;
        let DeclaredConstraint { kind, severity, meaning, .. } = declared;
        Some(Rule { kind: *kind, severity: *severity, meaning })
    }
}

/// True if this is the name of a built-in task, which no other may have.
pub fn is_built_in(name: &str) -> bool {
    find(name).is_ok() || name == prime_problems::SPEC.slug
}

fn read(declared: &Value) -> Result<Declaration, String> {
    let read: Declaration =
        serde_json::from_value(declared.clone()).map_err(|error| error.to_string())?;
    check(&read)?;
    Ok(read)
}

/// The text, kept as long as the process lives.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn kept_list<T: 'static>(list: impl IntoIterator<Item = T>) -> &'static [T] {
    Box::leak(list.into_iter().collect::<Vec<_>>().into_boxed_slice())
}

fn kept_fields(fields: BTreeMap<String, String>) -> &'static [(&'static str, &'static str)] {
    kept_list(fields.into_iter().map(|(name, meaning)| (kept(name), kept(meaning))))
}

fn build(slug: &str, declared: Declaration) -> Spec {
    let actions: Vec<ActionPage> = declared
        .actions
        .into_iter()
        .map(|action| match action {
            Action::Form(form) => {
                ActionPage { line: kept(form), effect: "", example: "", regex: None }
            }
            Action::Described(Described { form, line, effect, example }) => {
                let line = if line.is_empty() { form } else { line };
                ActionPage {
                    line: kept(line),
                    effect: kept(effect),
                    example: kept(example),
                    regex: None,
                }
            }
        })
        .collect();
    let constraints: Vec<Constraint> = declared
        .constraints
        .into_iter()
        .map(|DeclaredConstraint { name, kind, severity, meaning }| Constraint {
            name: kept(name),
            kind,
            severity,
            meaning: kept(meaning),
        })
        .collect();

    let constraints = kept_list(OWN.into_iter().chain(constraints));
    let title = if declared.title.is_empty() { slug.to_owned() } else { declared.title };
    let statement = kept(declared.statement);
    let example = Value::Object(declared.example.unwrap_or_default()).to_string();
    let page = Page {
        problem: statement,
        algorithm: statement,
        step: kept(declared.step),
        actions: kept_list(actions),
        input: kept_fields(declared.input),
        answer: kept_fields(declared.answer),
        state: kept_fields(declared.state),
        example: Example { input: kept(example), answer: "{}", steps: 0, first: &[], last: &[] },
        ..Page::EMPTY
    };
    Spec {
        id: u16::MAX,
        slug: kept(slug.to_owned()),
        title: kept(title),
        category: Category::Own,
        sizes: ["", "", ""],
        actions: &[],
        constraints,
        // The program defines the problem: an answer in which it finds nothing wrong is right.
        sound: constraints.iter().map(|constraint| constraint.kind).collect::<Kinds>(),
        decisive: &[],
        hidden: &[],
        paper: PaperFigures { steps: 0, baseline: 0.0, prime: 0.0 },
        page: Box::leak(Box::new(page)),
    }
}

fn forms(declared: &Declaration) -> &'static [&'static str] {
    if declared.actions.is_empty() {
        return &[ANY_LINE];
    }
    kept_list(declared.actions.iter().map(|action| match action {
        Action::Form(form) | Action::Described(Described { form, .. }) => kept(form.clone()),
    }))
}

/// The declarations that this process has seen.
struct Specs {
    bytes: usize,
    by_key: BTreeMap<String, &'static Spec>,
}

/// The constant part of a task of this name. Equal declarations share one, which is never freed, as
/// for every task: there is one for each change to a task's declaration.
///
/// # Errors
/// What is wrong with the declaration.
pub(super) fn spec(slug: &str, declared: &Value) -> Result<&'static Spec, String> {
    static SPECS: Mutex<Specs> = Mutex::new(Specs { bytes: 0, by_key: BTreeMap::new() });

    let read = read(declared)?;
    if is_built_in(slug) {
        return Err(format!("the name `{slug}` is that of a built-in task: choose another"));
    }

    let key = format!("{slug} {declared}");
    let mut specs = SPECS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = specs.by_key.get(&key) {
        return Ok(known);
    }

    specs.bytes += key.len();
    if specs.bytes > DECLARATIONS_BYTES_MAX {
        specs.bytes -= key.len();
        return Err(format!(
            "this process has seen {} MiB of declarations, which it keeps: restart it",
            DECLARATIONS_BYTES_MAX >> 20
        ));
    }
    let actions = forms(&read);
    let spec: &'static Spec = Box::leak(Box::new(Spec { actions, ..build(slug, read) }));
    specs.by_key.insert(key, spec);
    Ok(spec)
}
