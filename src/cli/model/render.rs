//! `model render`: the text that a model would see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueHint};
use prime_engine::{Chat, ChatMessages, PromptToken, TemplateVariables, Thinking, prompt_tokens};
use serde_json::{Value, json};

use crate::cli::output::{Output, print, print_json};
use crate::cli::values::json_or_file;

/// Longest template file, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 1 << 20;

#[derive(Args)]
pub struct RenderArguments {
    /// A GGUF file, or a file with a chat template
    #[arg(value_name = "FILE|TEMPLATE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The messages: a list of objects with role and content (JSON, or a file with it)
    #[arg(long, value_name = "FILE|JSON", value_hint = ValueHint::FilePath)]
    messages: PathBuf,
    /// Descriptions of tools: a list (JSON, or a file with it)
    #[arg(long, value_name = "FILE|JSON", value_hint = ValueHint::FilePath)]
    tools: Option<PathBuf>,
    /// A variable of the template, such as enable_thinking=false; a value that is not JSON is taken
    /// as text. Repeatable
    #[arg(long = "variable", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// How much the model is to think: model, off, or a number of tokens; the text shows how
    /// thinking is begun or left out
    #[arg(long, value_name = "model|off|TOKENS", default_value = "model", value_parser = thinking)]
    thinking: Thinking,
    /// Text of the begin-of-text token, for a template without a model
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    bos: String,
    /// Text of the end-of-text token, for a template without a model
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    eos: String,
    /// Show the prompt's tokens, as the file's tokenizer cuts it: their numbers and texts, one a
    /// line. Special tokens in messages are plain text, as in a turn
    #[arg(long)]
    tokens: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn thinking(text: &str) -> Result<Thinking, String> {
    match text {
        "model" => Ok(Thinking::AsModel),
        "off" => Ok(Thinking::Off),
        tokens => tokens
            .parse()
            .map(Thinking::AtMost)
            .map_err(|_| "write model, off, or a number of tokens".to_owned()),
    }
}

fn variables(given: &[String]) -> anyhow::Result<TemplateVariables> {
    let variable = |text: &String| {
        let (name, value) =
            text.split_once('=').with_context(|| format!("--variable {text}: write NAME=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((name.to_owned(), value))
    };
    given.iter().map(variable).collect()
}

fn is_gguf(path: &Path) -> anyhow::Result<bool> {
    use std::io::Read as _;

    let mut magic = Vec::new();
    let file = fs::File::open(path).with_context(|| format!("{}", path.display()))?;
    file.take(4).read_to_end(&mut magic).with_context(|| format!("{}", path.display()))?;
    Ok(magic == b"GGUF")
}

pub fn render(arguments: &RenderArguments) -> anyhow::Result<ExitCode> {
    let (path, variables) = (&arguments.file, variables(&arguments.variables)?);
    let messages: Value = json_or_file("--messages", &arguments.messages)?;
    let tools: Option<Value> =
        arguments.tools.as_ref().map(|tools| json_or_file("--tools", tools)).transpose()?;

    let is_gguf = is_gguf(path)?;
    if arguments.tokens {
        ensure!(
            is_gguf,
            "{}: --tokens needs a GGUF file, as a template alone has no tokenizer",
            path.display()
        );
        let thinking = arguments.thinking;
        let asked = ChatMessages { messages, tools, variables, thinking };
        return show_tokens(&prompt_tokens(path, &asked, None)?, arguments.output);
    }

    let chat = if is_gguf {
        Chat::of_file(path, &variables)?
    } else {
        let bytes = fs::metadata(path).with_context(|| format!("{}", path.display()))?.len();
        ensure!(bytes <= TEMPLATE_BYTES_MAX, "{}: too long for a template", path.display());
        let source = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        Chat::of_template(&source, &variables, (&arguments.bos, &arguments.eos))?
    };
    let text = chat.text(&messages, tools.as_ref(), arguments.thinking)?;

    match arguments.output {
        Output::Json => print_json(&json!({"text": text}))?,
        Output::Text => print(text + "\n")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints tokens, and as JSON their text too. Bytes that are not a character are shown as U+FFFD.
fn show_tokens(tokens: &[PromptToken], output: Output) -> anyhow::Result<ExitCode> {
    let piece = |token: &PromptToken| String::from_utf8_lossy(&token.piece).into_owned();
    match output {
        Output::Json => {
            let all: Vec<u8> = tokens.iter().flat_map(|token| token.piece.clone()).collect();
            let listed: Vec<_> =
                tokens.iter().map(|token| json!({"id": token.id, "piece": piece(token)})).collect();
            print_json(&json!({"text": String::from_utf8_lossy(&all), "tokens": listed}))?;
        }
        Output::Text => {
            // Quoted, so that blanks and line ends can be seen.
            let lines = tokens.iter().map(|token| format!("{:>7}  {:?}\n", token.id, piece(token)));
            print(lines.collect::<String>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
