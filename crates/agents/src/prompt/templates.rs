//! The set of templates: the built-in ones, and a user's own, which may override them. Errors in a
//! template are found before a run renders it.

use std::sync::Arc;

use dashmap::DashMap;
use minijinja::{Environment, Error, ErrorKind, Value as Variable};

use super::TEMPLATES;
use super::shown::Shown;
use super::variables::{self, Known, PromptContext, names};
use prime_protocol::Role;

/// A template that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "template `{template}`{}: {detail}",
    line.map_or_else(String::new, |line| format!(", line {line}"))
)]
pub struct TemplateError {
    /// Name of the template.
    pub template: String,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub detail: String,
}

impl TemplateError {
    pub(super) fn new(template: &str, line: Option<usize>, detail: impl Into<String>) -> Self {
        Self { template: template.to_owned(), line, detail: detail.into() }
    }

    fn of(template: &str, error: &Error) -> Self {
        // An error in an imported template has that template's line.
        let template = error.name().unwrap_or(template);
        let place = error
            .template_source()
            .zip(error.range())
            .and_then(|(source, range)| source.get(range));

        let detail = match (error.kind(), place) {
            (ErrorKind::UndefinedError, Some(place)) => {
                format!(
                    "there is no `{}` here: see agents/README.md for the variables",
                    place.trim()
                )
            }
            _ => error.detail().map_or_else(
                || error.kind().to_string(),
                |detail| format!("{}: {detail}", error.kind()),
            ),
        };

        Self::new(template, error.line(), detail)
    }
}

/// Templates by name. Clones share them.
#[derive(Clone)]
pub struct Templates(Arc<Environment<'static>>);

impl Default for Templates {
    fn default() -> Self {
        Self(Arc::new(TEMPLATES.clone()))
    }
}

impl Templates {
    /// The built-in templates and these texts by name, which override built-in ones of the same
    /// name. All may import each other.
    ///
    /// # Errors
    /// The first invalid template, with the line.
    pub fn with(texts: impl IntoIterator<Item = (String, String)>) -> Result<Self, TemplateError> {
        let mut environment = TEMPLATES.clone();
        for (name, text) in texts {
            let added = environment.add_template_owned(name.clone(), text);
            added.map_err(|error| TemplateError::of(&name, &error))?;
        }
        Ok(Self(Arc::new(environment)))
    }

    /// The names of all templates, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.templates().map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    /// The text of a template.
    pub fn source(&self, name: &str) -> Option<String> {
        self.0.get_template(name).ok().map(|template| template.source().to_owned())
    }

    /// Prepares a template for the turns of a role.
    ///
    /// # Errors
    /// There is no such template, or it uses a variable that the role does not have.
    pub fn prompt(&self, name: &str, role: Role) -> Result<Prompt, TemplateError> {
        let template = self.0.get_template(name).map_err(|error| match error.kind() {
            ErrorKind::TemplateNotFound => TemplateError::new(
                name,
                None,
                format!("not found; known templates: {}", self.names().join(", ")),
            ),
            _ => TemplateError::of(name, &error),
        })?;

        let source = template.source();
        let known = names(role);

        let asked = template.undeclared_variables(false);
        let mut unknown: Vec<_> = asked
            .iter()
            .filter(|name| {
                !known.contains(&name.as_str())
                    && !self.0.globals().any(|(global, _)| global == *name)
            })
            .collect();
        // Sorted, so that the same variable is named each time.
        unknown.sort_unstable();
        if let Some(unknown) = unknown.first() {
            let detail = format!(
                "there is no variable `{unknown}` for {role}s; known variables: {}",
                known.join(", ")
            );
            return Err(TemplateError::new(name, line_of(source, unknown), detail));
        }

        // Variables of included templates are not listed here.
        let is_whole = !["include", "extends"].iter().any(|word| source.contains(word));
        let wanted =
            known.iter().copied().filter(|name| !is_whole || asked.contains(*name)).collect();

        Ok(Prompt {
            environment: Arc::clone(&self.0),
            name: name.to_owned(),
            role,
            wanted,
            tasks: DashMap::new(),
            examples: DashMap::new(),
        })
    }
}

/// The first line that contains a name as a word, from 1.
fn line_of(source: &str, name: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    source
        .lines()
        .position(|line| line.split(|c| !is_name(c)).any(|word| word == name))
        .map(|at| at + 1)
}

/// A template prepared for a role's turns.
pub struct Prompt {
    environment: Arc<Environment<'static>>,
    name: String,
    role: Role,
    /// The variables that it may use; no others are computed.
    wanted: Vec<&'static str>,
    /// The variable `task` of each benchmark task.
    tasks: DashMap<&'static str, Variable>,
    /// The variable `examples` of each benchmark task.
    examples: DashMap<(&'static str, Shown), Variable>,
}

impl Prompt {
    /// Name of its template.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role whose turns it describes.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Renders a turn's prompt.
    ///
    /// # Errors
    /// The template uses something undefined, such as a field that a task does not have.
    pub fn render(&self, context: &PromptContext<'_>) -> Result<String, TemplateError> {
        let variables: Variable = self
            .wanted
            .iter()
            .map(|name| {
                let known = Known { tasks: &self.tasks, examples: &self.examples };
                (*name, variables::value(name, self.role, context, known))
            })
            .collect();

        let rendered = self
            .environment
            .get_template(&self.name)
            .and_then(|template| template.render(variables));

        rendered.map_err(|error| TemplateError::of(&self.name, &error))
    }
}
