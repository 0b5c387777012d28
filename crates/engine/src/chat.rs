//! Renders prompts with the chat template of the model's file. Adds nothing of its own.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use prime_chat_template::{ChatTemplate, Message, Piece, SpecialTokens};
use prime_reasoning::Form;

use super::gguf::{ChatTokenizer, read_chat_tokenizer};
use super::{EngineError, Thinking, memory_limit};

/// Values that a configuration gives to a chat template, by name.
pub type TemplateVariables = BTreeMap<String, serde_json::Value>;

/// Checks the names and sizes of variables, without a template.
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

/// Variables by which templates turn thinking on and off.
const SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// How a model begins: with its answer, or with thinking, and in which form.
#[derive(Debug, PartialEq, Eq)]
pub enum Begins {
    /// The answer, at once.
    Answer,
    /// The answer, unless the model opens its thinking itself.
    Either(Form),
    /// The thinking, which the prompt has opened.
    Thinking(Form),
}

/// A rendered prompt.
#[derive(Debug)]
pub struct Rendered {
    /// The prompt in pieces.
    pub pieces: Vec<Piece>,
    /// What the model continues with.
    pub begins: Begins,
}

/// The chat template of a file with its variables, and the file's special tokens.
#[derive(Debug)]
pub struct Chat {
    tokenizer: ChatTokenizer,
    variables: TemplateVariables,
    date: Date,
    template: ChatTemplate,
    /// The template with thinking turned off and on, where it has a switch for that.
    switched: [Option<ChatTemplate>; 2],
    form: Option<Form>,
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
    /// Like [`Chat::read`].
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
        let form = tokenizer.template.as_deref().and_then(Form::of_template);
        let mut chat = Self {
            tokenizer,
            variables: variables.clone(),
            date,
            template,
            switched: [None, None],
            form,
            tokens,
        };
        chat.compile_switched()?;
        Ok(chat)
    }

    /// Compiles the template with thinking turned off and on.
    fn compile_switched(&mut self) -> Result<(), EngineError> {
        let read = self.template.variables_read();
        let switches = SWITCHES.iter().filter(|name| read.contains(**name));
        let switches: Vec<_> = switches.map(|name| (*name).to_owned()).collect();
        if switches.is_empty() {
            return Ok(());
        }

        for (place, is_on) in [(0, false), (1, true)] {
            let mut variables = self.variables.clone();
            variables.extend(switches.iter().map(|name| (name.clone(), is_on.into())));
            self.switched[place] = Some(compiled(&self.tokenizer, &variables, self.date)?);
        }
        Ok(())
    }

    /// How the model thinks, if its template says so.
    pub fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    /// The text of messages, a list of objects, as they are, with as much thinking as is wanted:
    /// special tokens in them are not marked. A template that takes more than a gibibyte of memory
    /// ends the process.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the messages are no such list, or the template cannot be
    /// rendered.
    pub fn text(
        &self,
        messages: &serde_json::Value,
        tools: Option<&serde_json::Value>,
        thinking: Thinking,
    ) -> Result<String, EngineError> {
        let messages = listed(messages)?;
        let template = self.switched(thinking);
        let mut text = memory_limit::within(|| template.text(&messages, tools)).map_err(error)?;
        let (added, _) = self.beginning(&text, thinking);
        text.push_str(&added);
        Ok(text)
    }

    /// Like [`Chat::text`], but in pieces, as a worker renders prompts: special tokens in messages
    /// are plain text.
    ///
    /// # Errors
    /// Like [`Chat::text`].
    pub fn pieces(
        &self,
        messages: &serde_json::Value,
        tools: Option<&serde_json::Value>,
        thinking: Thinking,
    ) -> Result<Vec<Piece>, EngineError> {
        let messages = listed(messages)?;
        let template = self.switched(thinking);
        let pieces = memory_limit::within(|| template.pieces(&messages, tools, &self.tokens));
        Ok(self.with_beginning(pieces.map_err(error)?, thinking).pieces)
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

    /// The prompt on a day, with as much thinking as is wanted.
    ///
    /// # Errors
    /// [`EngineError::Chat`] when the template cannot be rendered.
    pub fn rendered(
        &mut self,
        system: Option<&str>,
        user: &str,
        thinking: Thinking,
        date: Date,
    ) -> Result<Rendered, EngineError> {
        // A worker may run for weeks.
        if date != self.date {
            self.template = compiled(&self.tokenizer, &self.variables, date)?;
            self.date = date;
            self.compile_switched()?;
        }

        let template = self.switched(thinking);
        let pieces = memory_limit::within(|| template.prompt(system, user, &self.tokens));
        Ok(self.with_beginning(pieces.map_err(error)?, thinking))
    }

    /// A rendered prompt with what is added to it.
    fn with_beginning(&self, mut pieces: Vec<Piece>, thinking: Thinking) -> Rendered {
        // What follows the user's message is one piece, because it has no marks.
        let end = pieces.last().map(|last| last.text.as_str()).unwrap_or_default();
        let (added, begins) = self.beginning(end, thinking);
        if !added.is_empty() {
            pieces.push(Piece { text: added, has_special_tokens: true });
        }
        Rendered { pieces, begins }
    }

    /// The template with as much thinking as is wanted, where it has a switch for it.
    fn switched(&self, thinking: Thinking) -> &ChatTemplate {
        let switched = match thinking {
            Thinking::AsModel => None,
            Thinking::Off => self.switched[0].as_ref(),
            Thinking::AtMost(_) => self.switched[1].as_ref(),
        };
        switched.unwrap_or(&self.template)
    }

    /// What is added to a rendered prompt that ends with this text, and what the model then begins
    /// with.
    fn beginning(&self, end: &str, thinking: Thinking) -> (String, Begins) {
        let Some(form) = &self.form else { return (String::new(), Begins::Answer) };
        let is_open = form.is_opened_by(end);
        match thinking {
            Thinking::AsModel if is_open => (String::new(), Begins::Thinking(form.clone())),
            Thinking::AsModel => (String::new(), Begins::Either(form.clone())),
            Thinking::AtMost(_) => {
                let open = if is_open { String::new() } else { form.open.clone() };
                (open, Begins::Thinking(form.clone()))
            }
            Thinking::Off if is_open => (format!("{}{}", form.end, form.then), Begins::Answer),
            // A template with a switch has done what is needed.
            Thinking::Off if self.switched[0].is_some() => (String::new(), Begins::Answer),
            Thinking::Off => (form.skip.clone(), Begins::Answer),
        }
    }
}

/// Messages as a template takes them.
fn listed(messages: &serde_json::Value) -> Result<Vec<Message>, EngineError> {
    serde_json::from_value(messages.clone())
        .map_err(|reason| error(format_args!("messages: {reason}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A template with a switch, as Qwen3's; one that opens the thinking, as DeepSeek-R1's; one
    /// whose model opens it itself, as Magistral's; GPT-OSS's.
    const SWITCHED: &str = "{{ messages[-1].content }}|A|{% if enable_thinking is defined and \
                            enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}";
    const OPENED: &str = "{{ messages[-1].content }}|A|{{ '<think>\n' }}";
    const BY_MODEL: &str = "{# [THINK] #}{{ messages[-1].content }}[/INST]";
    const HARMONY: &str = "{# <|channel|> #}{{ messages[-1].content }}<|start|>assistant";
    const NONE: &str = "{{ messages[-1].content }}|A|";

    #[test]
    fn a_prompt_ends_where_the_model_is_to_continue() {
        for (source, as_model, off, at_most) in [
            (SWITCHED, "Hi|A|", "Hi|A|<think>\n\n</think>\n\n", "Hi|A|<think>\n"),
            (OPENED, "Hi|A|<think>\n", "Hi|A|<think>\n</think>\n\n", "Hi|A|<think>\n"),
            (BY_MODEL, "Hi[/INST]", "Hi[/INST][THINK][/THINK]", "Hi[/INST][THINK]"),
            (
                HARMONY,
                "Hi<|start|>assistant",
                "Hi<|start|>assistant<|channel|>final<|message|>",
                "Hi<|start|>assistant<|channel|>analysis<|message|>",
            ),
            (NONE, "Hi|A|", "Hi|A|", "Hi|A|"),
        ] {
            let none = TemplateVariables::new();
            let mut chat = Chat::of_template(source, &none, ("", "")).expect("a template");
            for (thinking, expected) in [
                (Thinking::AsModel, as_model),
                (Thinking::Off, off),
                (Thinking::AtMost(9), at_most),
            ] {
                let rendered = chat.rendered(None, "Hi", thinking, today()).expect("rendered");
                let text: String = rendered.pieces.into_iter().map(|piece| piece.text).collect();
                assert_eq!(text, expected, "{source}, {thinking:?}");
                let is_thinking = matches!(rendered.begins, Begins::Thinking(_));
                let expected = match thinking {
                    Thinking::AsModel => source == OPENED,
                    Thinking::Off => false,
                    Thinking::AtMost(_) => source != NONE,
                };
                assert_eq!(is_thinking, expected, "{source}, {thinking:?}");
            }
        }
    }

    #[test]
    fn a_message_does_not_open_the_thinking() {
        let none = TemplateVariables::new();
        let mut chat = Chat::of_template("<think>{{ messages[-1].content }}", &none, ("", ""))
            .expect("a template");
        let rendered = chat.rendered(None, "a</think>b", Thinking::AsModel, today());
        assert!(matches!(rendered.expect("rendered").begins, Begins::Either(_)));
    }
}
