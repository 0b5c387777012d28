//! Prompts without their instance: a template is rendered once for a task and a style, and then
//! only filled in.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use minijinja::context;

use super::{Components, Style, render, view, visible};
use crate::tasks::{Problem, Spec};

/// Delimiters around the name of a place; no template and no page contains them.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';
const INPUT: &str = "input";
const STATE: &str = "state";
const LENGTH: &str = "length";
/// Prefix of the names of input fields.
const FIELD: char = '.';

enum Place {
    /// The input as JSON.
    Input,
    /// The first state as JSON.
    State,
    /// The number of elements of the field `a`.
    Length,
    /// A field of the input, as JSON.
    Field(String),
}

/// A prompt with places for the data of an instance.
pub struct Skeleton {
    /// Each place, with the text before it.
    pieces: Vec<(String, Place)>,
    rest: String,
}

/// The key of a skeleton: the task, by the address of its specification, and the style.
type Key = (usize, &'static str, Components);

static KNOWN: LazyLock<RwLock<HashMap<Key, Arc<Skeleton>>>> = LazyLock::new(RwLock::default);

/// The skeleton of a task's prompt in a style.
pub fn of(spec: &'static Spec, style: Style) -> Arc<Skeleton> {
    let components =
        if let Style::Structured(components) = style { components } else { Components::ALL };
    let key = (std::ptr::from_ref(spec) as usize, style.name(), components);

    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(known);
    }

    // Two threads may make the same skeleton at once; either will do.
    let made = Arc::new(Skeleton::made(spec, style, components));
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&made));
    made
}

impl Skeleton {
    fn made(spec: &'static Spec, style: Style, components: Components) -> Self {
        let mark = |name: &str| format!("{OPEN}{name}{CLOSE}");
        let names = spec.page.input.iter().map(|(name, _)| *name);
        let values: BTreeMap<&str, String> =
            names.map(|name| (name, mark(&format!("{FIELD}{name}")))).collect();

        let variables = context! {
            task => view(spec),
            input => mark(INPUT),
            state => mark(STATE),
            values,
            length => mark(LENGTH),
            with => components,
        };
        let text = render(&format!("benchmark/{style}.j2"), variables);

        let mut pieces = Vec::new();
        let mut rest = text.as_str();

        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) = after.split_once(CLOSE).expect("invariant: a place is closed");
            let place = match name {
                INPUT => Place::Input,
                STATE => Place::State,
                LENGTH => Place::Length,
                field => Place::Field(field.trim_start_matches(FIELD).to_owned()),
            };
            pieces.push((before.to_owned(), place));
            rest = after;
        }
        Self { pieces, rest: rest.to_owned() }
    }

    /// The prompt of a problem.
    pub fn filled(&self, problem: &dyn Problem) -> String {
        let input = visible(problem.spec(), problem.input());
        // The static text, and a guess at the instance's data.
        let mut text = String::with_capacity(self.rest.len() + 4096);
        let mut write = |value: &dyn std::fmt::Display| {
            write!(text, "{value}").expect("invariant: writing to a string succeeds");
        };

        for (before, place) in &self.pieces {
            write(before);
            match place {
                Place::Input => write(&input),
                Place::State => write(&problem.start().state()),
                Place::Length => write(&input["a"].as_array().map_or(0, Vec::len)),
                Place::Field(name) => write(&input[name.as_str()]),
            }
        }

        write(&self.rest);
        text
    }
}
