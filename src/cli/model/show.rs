//! `model show`: what a GGUF file holds.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueHint};
use prime_engine::{Bytes, MemoryEstimate};
use prime_printable::printable_line;
use serde_json::{Value, json};

use super::adapter::{self, is_adapter};
use super::facts::{ChatTemplateFacts, ModelFacts};
use crate::cli::output::{Output, print, print_json};

#[derive(Args)]
pub struct ShowArguments {
    /// The GGUF file, of a model or of an adapter
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// For an adapter: the GGUF file of a model, to see whether the adapter fits it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    model: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    if is_adapter(&arguments.file)? {
        return adapter::show(&arguments.file, arguments.model.as_deref(), arguments.output);
    }
    ensure!(
        arguments.model.is_none(),
        "{} is a model itself: --model names the model of an adapter",
        arguments.file.display()
    );

    // A model that does not fit still has facts.
    let mut facts = ModelFacts::without_fit(&arguments.file)?;
    let fit = ModelFacts::of(&arguments.file).map(|fitted| facts = fitted);
    let mut odd = facts.odd();
    odd.extend(fit.err().map(|error| error.to_string()));

    match arguments.output {
        Output::Json => print_json(&as_json(&facts, &odd))?,
        Output::Text => print(as_text(&facts, &odd))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn number(facts: &ModelFacts, key: &str) -> Option<u64> {
    let numbers = facts.header.numbers(&format!("{}.{key}", facts.architecture))?;
    numbers.first().copied()
}

fn weights(facts: &ModelFacts) -> u64 {
    facts.header.tensors.iter().map(|tensor| tensor.bytes).sum()
}

fn as_json(facts: &ModelFacts, odd: &[String]) -> Value {
    let template = match &facts.chat_template {
        ChatTemplateFacts::Absent => json!({"present": false}),
        ChatTemplateFacts::Unusable(reason) => {
            json!({"present": true, "usable": false, "reason": reason})
        }
        ChatTemplateFacts::Usable { variables, opens_thinking } => json!({
            "present": true, "usable": true, "variables": variables,
            "opens_thinking": opens_thinking,
        }),
    };
    let memory = facts.fit.as_ref().map(|fit| {
        json!({
            "weights_bytes": fit.estimate.weights_bytes,
            "kv_bytes": fit.estimate.kv_bytes,
            "state_bytes": fit.estimate.state_bytes,
            "checkpoint_bytes": fit.estimate.checkpoint_bytes,
            "compute_bytes": fit.estimate.compute_bytes,
            "reserve_bytes": fit.estimate.reserve_bytes,
            "free_bytes": fit.free.first().map(|free| free.free_bytes),
        })
    });
    json!({
        "architecture": facts.architecture,
        "parameters": facts.parameters(),
        "weights_bytes": weights(facts),
        "layers": number(facts, "block_count"),
        "width": number(facts, "embedding_length"),
        "vocabulary": facts.header.vocabulary,
        "chat_template": template,
        "bos_token": facts.tokenizer.bos,
        "eos_token": facts.tokenizer.eos,
        "control_tokens": facts.tokenizer.control.len(),
        "trained_context": facts.trained_context,
        "context_tokens": facts.fit.as_ref().map(|_| facts.context_tokens),
        "memory": memory,
        "odd": odd,
    })
}

/// The states of recurrent layers, if the model has any.
fn states(needs: &MemoryEstimate) -> String {
    if needs.state_bytes == 0 {
        return String::new();
    }
    let (states, saved) = (Bytes(needs.state_bytes), Bytes(needs.checkpoint_bytes));
    format!(", states {states} (and up to {saved} of saved ones)")
}

fn as_text(facts: &ModelFacts, odd: &[String]) -> String {
    let known = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let token = |text: &str| match text {
        "" => "none".to_owned(),
        text => printable_line(text).into_owned(),
    };
    let template = match &facts.chat_template {
        ChatTemplateFacts::Absent => "none".to_owned(),
        ChatTemplateFacts::Unusable(_) => "present, cannot be used (see below)".to_owned(),
        ChatTemplateFacts::Usable { variables, .. } if variables.is_empty() => {
            "present, reads no variables".to_owned()
        }
        ChatTemplateFacts::Usable { variables, .. } => {
            let names: Vec<_> = variables.iter().map(|name| printable_line(name)).collect();
            format!("present, reads the variables {}", names.join(", "))
        }
    };
    let mut lines = vec![
        ("architecture", printable_line(&facts.architecture).into_owned()),
        (
            "size",
            format!(
                "{:.1} M parameters, {}, {} layers of width {}",
                facts.parameters() as f64 / 1e6,
                Bytes(weights(facts)),
                known(number(facts, "block_count")),
                known(number(facts, "embedding_length"))
            ),
        ),
        ("chat template", template),
        (
            "tokens",
            format!(
                "{}, {} of them control tokens; begin of text {}, end of text {}",
                facts.header.vocabulary,
                facts.tokenizer.control.len(),
                token(&facts.tokenizer.bos),
                token(&facts.tokenizer.eos)
            ),
        ),
        ("trained context", format!("{} tokens", known(facts.trained_context))),
    ];
    if let Some(fit) = &facts.fit {
        let needs = &fit.estimate;
        lines.push((
            "memory on the CPU",
            format!(
                "{} for {} tokens of context: weights {}, KV cache {}{}, compute {}, process {}",
                Bytes(needs.total_bytes(1)),
                facts.context_tokens,
                Bytes(needs.weights_bytes),
                Bytes(needs.kv_bytes),
                states(needs),
                Bytes(needs.compute_bytes),
                Bytes(needs.reserve_bytes)
            ),
        ));
        let free = fit
            .free
            .first()
            .map_or_else(|| "unknown".to_owned(), |free| Bytes(free.free_bytes).to_string());
        lines.push(("free memory", free));
    }
    for what in odd {
        lines.push(("note", what.clone()));
    }
    lines
        .into_iter()
        .fold(String::new(), |text, (what, line)| text + &format!("{what:<18} {line}\n"))
}
