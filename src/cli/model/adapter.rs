//! `model show` of an adapter: what it changes, and whether it fits a model.

use std::path::Path;
use std::process::ExitCode;

use prime_engine::gguf::{AdapterFile, read, read_adapter, read_model};
use prime_engine::{Adapter, Bytes};
use prime_printable::printable_line;
use serde_json::{Value, json};

use crate::cli::output::{Output, print, print_json};

/// Returns whether the file says that it is an adapter of any kind.
///
/// # Errors
/// When it is not a GGUF file.
pub(super) fn is_adapter(file: &Path) -> anyhow::Result<bool> {
    let header = read(file)?;
    let names_one = |key: &String| key.starts_with("adapter.");
    let is_half = |name: &str| name.ends_with(".lora_a") || name.ends_with(".lora_b");
    Ok(header.values.keys().any(names_one)
        || header.tensors.iter().any(|tensor| is_half(&tensor.name)))
}

/// Shows an adapter and, with a model, whether it fits that.
///
/// # Errors
/// When it is not a LoRA adapter, or does not fit the model.
pub(super) fn show(file: &Path, model: Option<&Path>, output: Output) -> anyhow::Result<ExitCode> {
    let facts = read_adapter(file)?;
    let adapter = Adapter::read(file)?;
    if let Some(model) = model {
        adapter.check(model, &read_model(model)?)?;
    }

    let digest = adapter.digest.unwrap_or_default();
    match output {
        Output::Json => print_json(&as_json(&facts, &digest, model.is_some()))?,
        Output::Text => print(as_text(&facts, &digest, model))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(facts: &AdapterFile, digest: &str, is_fitting: bool) -> Value {
    let (least, most) = facts.rank_range();
    let mut shown = json!({
        "kind": "lora",
        "architecture": facts.architecture,
        "name": facts.name,
        "base": facts.base,
        "prompt": facts.prompt,
        "rank_min": least,
        "rank_max": most,
        "alpha": facts.alpha,
        "matrices": facts.ranks.len(),
        "bytes": facts.bytes,
        "invocation_tokens": facts.invocation_tokens,
        "sha256": digest,
    });
    if is_fitting {
        shown["fits"] = true.into();
    }
    shown
}

fn as_text(facts: &AdapterFile, digest: &str, model: Option<&Path>) -> String {
    let (least, most) = facts.rank_range();
    let rank = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let named = |name: &Option<String>| {
        name.as_deref().map_or("not stated".to_owned(), |name| printable_line(name).into_owned())
    };
    let mut lines = vec![
        ("adapter", format!("LoRA, {}", named(&facts.name))),
        ("architecture", printable_line(&facts.architecture).into_owned()),
        ("trained on", named(&facts.base)),
        ("prompt", named(&facts.prompt)),
        (
            "size",
            format!(
                "rank {rank}, alpha {}, {} matrices, {}",
                facts.alpha,
                facts.ranks.len(),
                Bytes(facts.bytes)
            ),
        ),
        ("SHA-256", digest.to_owned()),
    ];
    if !facts.invocation_tokens.is_empty() {
        let text = "has invocation tokens (aLoRA), which engines do not use: it is applied to the \
                    whole prompt";
        lines.push(("activation", text.to_owned()));
    }
    if let Some(model) = model {
        lines.push(("fits", printable_line(&model.to_string_lossy()).into_owned()));
    }
    let width = lines.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let lines: Vec<_> =
        lines.iter().map(|(what, text)| format!("{what:width$}  {text}\n")).collect();
    lines.concat()
}
