//! Renders prompts with the chat template of the model's file. Adds nothing of its own.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use prime_chat_template::{ChatTemplate, Message, Piece, SpecialTokens};

use super::gguf::{ChatTokenizer, read_chat_tokenizer};
use super::{EngineError, memory_limit};

/// Values that a configuration gives to a chat template, by name.
pub type TemplateVariables = BTreeMap<String, serde_json::Value>;

/// Checks names and sizes of variables, without a template.
///
/// # Errors
/// What is wrong, in words.
pub fn check_template_variables(variables: &TemplateVariables) -> Result<(), String> {
    prime_chat_template::check_variables(variables).map_err(|error| error.to_string())
}

pub(super) fn error(detail: impl std::fmt::Display) -> EngineError {
    EngineError::Chat { detail: detail.to_string() }
}

/// Today in UTC: some templates state the date.
pub(super) fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// The chat template of a file with its variables, and the file's special tokens.
#[derive(Debug)]
pub struct Chat {
    tokenizer: ChatTokenizer,
    variables: TemplateVariables,
    date: Date,
    template: ChatTemplate,
    tokens: SpecialTokens,
}

impl Chat {
    /// Compiles the template of a model's file, and renders nothing yet. `control` are the texts of
    /// the special tokens where llama.cpp knows more of them than the file says.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when there is no template, when it is not valid, or when it does not
    /// read one of the variables; errors of the file.
    pub fn read(
        path: &Path,
        variables: &TemplateVariables,
        control: Option<Vec<String>>,
        date: Date,
    ) -> Result<Self, EngineError> {
        let mut tokenizer = read_chat_tokenizer(path)?;
        if let Some(control) = control {
            tokenizer.control = control;
        }
        Self::new(tokenizer, variables, date)
    }

    /// The template of a model's file, for today.
    ///
    /// # Errors
    /// As [`Chat::read`].
    pub fn of_file(path: &Path, variables: &TemplateVariables) -> Result<Self, EngineError> {
        Self::read(path, variables, None, today())
    }

    /// A template without a model, whose begin-of-text and end-of-text tokens have these texts.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the template is not valid or does not read a variable.
    pub fn of_template(
        source: &str,
        variables: &TemplateVariables,
        (bos, eos): (&str, &str),
    ) -> Result<Self, EngineError> {
        let tokenizer = ChatTokenizer {
            template: Some(source.to_owned()),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            control: Vec::new(),
        };
        Self::new(tokenizer, variables, today())
    }

    fn new(
        tokenizer: ChatTokenizer,
        variables: &TemplateVariables,
        date: Date,
    ) -> Result<Self, EngineError> {
        let tokens = SpecialTokens::new(tokenizer.control.iter().cloned()).map_err(error)?;
        let template = compiled(&tokenizer, variables, date)?;
        Ok(Self { tokenizer, variables: variables.clone(), date, template, tokens })
    }

    /// The text of messages, a list of objects, as they are: special tokens in them are not marked.
    /// A template that takes more than a gibibyte of memory ends the process.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the messages are no such list, or the template cannot be
    /// rendered.
    pub fn text(
        &self,
        messages: &serde_json::Value,
        tools: Option<&serde_json::Value>,
    ) -> Result<String, EngineError> {
        let messages: Vec<Message> = serde_json::from_value(messages.clone())
            .map_err(|reason| error(format_args!("messages: {reason}")))?;
        memory_limit::within(|| self.template.text(&messages, tools)).map_err(error)
    }

    /// Renders a sample.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the template cannot be rendered.
    pub fn check(&self) -> Result<(), EngineError> {
        self.template.check(&self.tokens).map_err(error)
    }

    /// The compiled template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The prompt in pieces, on a day.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the template cannot be rendered.
    pub fn pieces(
        &mut self,
        system: Option<&str>,
        user: &str,
        date: Date,
    ) -> Result<Vec<Piece>, EngineError> {
        // A worker may run for weeks.
        if date != self.date {
            self.template = compiled(&self.tokenizer, &self.variables, date)?;
            self.date = date;
        }
        memory_limit::within(|| self.template.prompt(system, user, &self.tokens)).map_err(error)
    }
}

fn compiled(
    tokenizer: &ChatTokenizer,
    variables: &TemplateVariables,
    date: Date,
) -> Result<ChatTemplate, EngineError> {
    let Some(source) = &tokenizer.template else {
        return Err(error("its file has none, as is usual for base models"));
    };
    ChatTemplate::new(source, variables, (&tokenizer.bos, &tokenizer.eos), date).map_err(error)
}
