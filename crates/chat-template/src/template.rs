//! A chat template and its rendering.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use minijinja::value::Value;
use minijinja::{Environment, ErrorKind};
use prime_printable::printable_line;

use crate::dialect::{RAISED, environment, value_of, without_training_tags};
use crate::protect::{Piece, SpecialTokens};
use crate::variables::{DATE, VariableError, check_variables};

/// The name of the template in its environment.
const NAME: &str = "chat_template";
/// Longest source, in bytes; the longest known one has 20 KiB.
const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Most bytes that a rendering may add to the messages: the instructions of templates are short.
const ADDED_BYTES_MAX: usize = 1 << 20;

/// A message of a conversation, with the fields that templates look at.
pub type Message = serde_json::Map<String, serde_json::Value>;

/// Why a template cannot be used. Text of the template is made printable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is not Jinja, or uses something that Jinja does not have.
    #[error("it cannot be read as Jinja: {0}")]
    Syntax(String),
    /// It raised an exception.
    #[error("it refuses the messages: {0}")]
    Refused(String),
    /// It uses an unknown function, filter, test or method, or fails in another way.
    #[error("it cannot be rendered: {0}")]
    Failed(String),
    /// It renders more text than its messages can explain, or takes too long.
    #[error("its text has {0} bytes more than its messages, which is above {ADDED_BYTES_MAX}")]
    TooLong(usize),
    /// Its source is too long.
    #[error("it has {0} bytes, and may have at most {SOURCE_BYTES_MAX}")]
    SourceTooLong(usize),
    /// It ignores the user's message.
    #[error("its text does not contain the user's message")]
    DropsMessage,
    /// A variable of the configuration is wrong.
    #[error("variables: {0}")]
    Variable(#[from] VariableError),
    /// A variable of the configuration that the template does not read.
    #[error(
        "it reads no variable `{name}`, remove it from `template_variables`; it reads: {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    UnknownVariable {
        /// The variable.
        name: String,
        /// Variables that the template reads and a configuration may set.
        known: Vec<String>,
    },
}

/// A compiled template with its variables.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    variables: BTreeMap<String, serde_json::Value>,
    bos: String,
    eos: String,
}

/// A text of a template or of minijinja, for messages: one line, without control characters.
fn shown(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(300).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    printable_line(&short).into_owned()
}

/// The error of minijinja, with its line and the errors that caused it.
fn failure(error: &minijinja::Error) -> TemplateError {
    let detail = error.detail().unwrap_or_default();
    if let Some(said) = detail.strip_prefix(RAISED) {
        return TemplateError::Refused(shown(said));
    }
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    let text = if detail.is_empty() {
        format!("{}{line}", error.kind())
    } else {
        format!("{}{line}: {detail}", error.kind())
    };
    match error.kind() {
        ErrorKind::SyntaxError => TemplateError::Syntax(shown(&text)),
        ErrorKind::OutOfFuel => {
            TemplateError::Failed("it takes more steps than rendering may take".to_owned())
        }
        _ => TemplateError::Failed(shown(&text)),
    }
}

impl ChatTemplate {
    /// Compiles a template. `bos` and `eos` are the texts of the model's tokens, empty if it has
    /// none; today is `date`, unless the variable `date` says otherwise.
    ///
    /// # Errors
    /// It cannot be read, or a variable is wrong or unknown to it.
    pub fn new(
        source: &str,
        variables: &BTreeMap<String, serde_json::Value>,
        (bos, eos): (&str, &str),
        date: Date,
    ) -> Result<Self, TemplateError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(TemplateError::SourceTooLong(source.len()));
        }
        check_variables(variables)?;

        let today = variables.get(DATE).and_then(|date| date.as_str()?.parse().ok());
        let mut environment = environment(today.unwrap_or(date));
        let source = without_training_tags(source);
        environment.add_template_owned(NAME, source.clone()).map_err(|error| failure(&error))?;

        let this = Self {
            environment,
            source,
            variables: variables.clone(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
        };
        let read = this.variables_read();
        match variables.keys().find(|name| !read.contains(*name)) {
            Some(name) if name != DATE || !this.source.contains("strftime_now") => {
                Err(TemplateError::UnknownVariable {
                    name: name.clone(),
                    known: read.into_iter().collect(),
                })
            }
            _ => Ok(this),
        }
    }

    /// The variables that the template reads and a configuration may set, sorted.
    pub fn variables_read(&self) -> BTreeSet<String> {
        let Ok(template) = self.environment.get_template(NAME) else { return BTreeSet::new() };
        let given = |name: &String| {
            let one = BTreeMap::from([(name.clone(), serde_json::Value::Null)]);
            let is_set_by_program =
                matches!(check_variables(&one), Err(VariableError::Reserved(_)));
            let is_builtin = ["namespace", "range", "dict", "debug", "lipsum", "cycler", "joiner"];
            !is_set_by_program && !is_builtin.contains(&name.as_str())
        };
        template.undeclared_variables(false).into_iter().filter(given).collect()
    }

    /// The text of these messages, unchanged, that the model continues.
    ///
    /// # Errors
    /// The template refuses the messages, or cannot be rendered.
    pub fn text(
        &self,
        messages: &[Message],
        tools: Option<&serde_json::Value>,
    ) -> Result<String, TemplateError> {
        let mut context: BTreeMap<&str, Value> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value_of(value))).collect();
        let all: Vec<Value> = messages
            .iter()
            .map(|message| value_of(&serde_json::Value::Object(message.clone())))
            .collect();
        context.insert("messages", Value::from(all));
        context.insert("add_generation_prompt", Value::from(true));
        context.insert("bos_token", Value::from(self.bos.as_str()));
        context.insert("eos_token", Value::from(self.eos.as_str()));
        // `transformers` always gives these two.
        for absent in ["tools", "documents"] {
            context.entry(absent).or_insert_with(|| Value::from(()));
        }
        if let Some(tools) = tools {
            context.insert("tools", value_of(tools));
        }

        let template = self.environment.get_template(NAME).map_err(|error| failure(&error))?;
        let text = template.render(context).map_err(|error| failure(&error))?;

        let given = serde_json::to_string(messages).map_or(0, |text| text.len());
        match text.len().saturating_sub(given) {
            added if added > ADDED_BYTES_MAX => Err(TemplateError::TooLong(added)),
            _ => Ok(text),
        }
    }

    /// The prompt of a user's message, and of a system message if there is one. Special tokens in
    /// them are plain text.
    ///
    /// # Errors
    /// The template refuses the messages, or cannot be rendered.
    pub fn prompt(
        &self,
        system: Option<&str>,
        user: &str,
        tokens: &SpecialTokens,
    ) -> Result<Vec<Piece>, TemplateError> {
        let mark = SpecialTokens::mark(&[system.unwrap_or_default(), user, &self.source]);
        let message = |role: &str, text: &str| {
            let text = tokens.marked(text, mark);
            Message::from_iter([
                ("role".to_owned(), role.into()),
                ("content".to_owned(), text.into()),
            ])
        };
        let messages: Vec<Message> = system
            .map(|text| message("system", text))
            .into_iter()
            .chain([message("user", user)])
            .collect();

        match self.text(&messages, None) {
            // Some models know no system message: the instructions begin the user's message.
            Err(TemplateError::Refused(_)) if system.is_some() => {
                let joined = format!("{}\n\n{user}", system.unwrap_or_default());
                let text = self.text(&[message("user", &joined)], None)?;
                Ok(tokens.pieces(&text, mark))
            }
            text => Ok(tokens.pieces(&text?, mark)),
        }
    }

    /// The prompt of messages, whose contents' special tokens are plain text.
    ///
    /// # Errors
    /// Like [`ChatTemplate::text`].
    pub fn pieces(
        &self,
        messages: &[Message],
        tools: Option<&serde_json::Value>,
        tokens: &SpecialTokens,
    ) -> Result<Vec<Piece>, TemplateError> {
        // What is in the messages, and where, is all in their JSON, whose escapes hide no mark.
        let all = serde_json::to_string(messages).unwrap_or_default();
        let mark = SpecialTokens::mark(&[&all, &self.source]);
        let mut marked = messages.to_vec();
        for content in marked.iter_mut().filter_map(|message| message.get_mut("content")) {
            for_each_text(content, &mut |text| *text = tokens.marked(text, mark));
        }
        Ok(tokens.pieces(&self.text(&marked, tools)?, mark))
    }

    /// Renders a sample, so that a fault of a template shows when its model is loaded and not at
    /// the first turn.
    ///
    /// # Errors
    /// The template cannot be rendered, or drops the user's message.
    pub fn check(&self, tokens: &SpecialTokens) -> Result<(), TemplateError> {
        const SAMPLE: &str = "What is 2 + 3?";
        for system in [None, Some("Answer with one line.")] {
            let pieces = self.prompt(system, SAMPLE, tokens)?;
            let text: String = pieces.into_iter().map(|piece| piece.text).collect();
            if !text.contains(SAMPLE) {
                return Err(TemplateError::DropsMessage);
            }
        }
        Ok(())
    }
}

/// Calls `change` for the text of a message, or for the text of each of its parts.
fn for_each_text(content: &mut serde_json::Value, change: &mut impl FnMut(&mut String)) {
    match content {
        serde_json::Value::String(text) => change(text),
        serde_json::Value::Array(parts) => {
            for part in parts {
                for_each_text(part, change);
            }
        }
        serde_json::Value::Object(part) => {
            if let Some(text) = part.get_mut("text") {
                for_each_text(text, change);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
