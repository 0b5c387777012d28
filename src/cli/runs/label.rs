//! `runs label`: gives a run labels, or takes them away.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{Common, run_id, show};

#[derive(Args)]
pub struct LabelArguments {
    /// Run id; the run may be over
    #[arg(value_parser = run_id)]
    id: String,
    /// Labels to set
    #[arg(value_name = "NAME:VALUE", value_parser = label_pair, required_unless_present = "remove")]
    labels: Vec<(String, String)>,
    /// Label to remove; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// A name with its value; the daemon checks both.
pub fn label_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| {
        "give a name and a value with a colon between them, such as team:red".to_owned()
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

pub fn label(arguments: &LabelArguments) -> anyhow::Result<ExitCode> {
    let LabelArguments { id, labels, remove, common } = arguments;
    let client = common.client()?;
    let run = client.get(&format!("/v1/runs/{id}"), &[])?.json::<Value>()?;

    let mut changes = Map::new();
    for name in remove {
        if run["labels"].get(name).is_none() {
            anyhow::bail!("--remove {name:?}: the run has no such label");
        }
        changes.insert(name.clone(), Value::Null);
    }
    changes.extend(labels.iter().map(|(name, value)| (name.clone(), json!(value))));

    let path = format!("/v1/runs/{id}/labels");
    let record = client.patch(&path, &Value::Object(changes))?.json()?;
    show::print(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_and_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(label_pair("team:red"), pair("team", "red"));
        assert_eq!(label_pair("url:http://x"), pair("url", "http://x"));
        assert_eq!(label_pair("empty:"), pair("empty", ""));
        assert!(label_pair("team").is_err());
    }
}
