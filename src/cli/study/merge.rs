//! `study merge`: records of several makers in one file, each run checked against the benchmark.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueHint};
use serde_json::json;

use crate::cli::output::{Output, count, note, print, print_json};
use prime_dataset::files::Whole;
use prime_study::records::{Merged, Part, Record, merge as merged};

#[derive(Args)]
pub struct MergeArguments {
    /// Files of records; with NAME=, its systems are called `NAME: SYSTEM`
    #[arg(required = true, value_name = "[NAME=]FILE", value_parser = part, value_hint = ValueHint::FilePath)]
    files: Vec<Part>,
    /// File that the records are written to; it must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Longest name of a part: it stands before each system's name in tables.
const NAME_CHARACTERS_MAX: usize = 40;

fn part(text: &str) -> Result<Part, String> {
    // A file may have an equals sign in its name.
    let named = text.split_once('=').filter(|_| !Path::new(text).exists());
    let Some((name, path)) = named else {
        return Ok(Part { name: None, path: PathBuf::from(text) });
    };

    let is_plain = !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARACTERS_MAX
        && !name.chars().any(char::is_control);
    if !is_plain {
        return Err(format!(
            "the name before `=` must have 1 to {NAME_CHARACTERS_MAX} printable characters"
        ));
    }
    Ok(Part { name: Some(name.trim().to_owned()), path: PathBuf::from(path) })
}

/// Writes the records to a file that appears when it is complete.
fn write(out: &Path, records: &[Record]) -> anyhow::Result<()> {
    let mut file = Whole::uncompressed(out)?;
    for record in records {
        serde_json::to_writer(&mut file, record)?;
        file.write_all(b"\n")?;
    }
    file.finish()?;
    Ok(())
}

fn systems(records: &[Record]) -> usize {
    let names: std::collections::BTreeSet<_> =
        records.iter().map(|record| record.system.as_str()).collect();
    names.len()
}

pub fn merge(arguments: &MergeArguments) -> anyhow::Result<ExitCode> {
    let MergeArguments { files, out, output } = arguments;
    ensure!(
        !out.exists(),
        "--out {}: it exists already; name another file, or remove it",
        out.display()
    );

    let Merged { records, checked, unchecked, repeated, versions, reconfigured } = merged(files)?;
    write(out, &records).with_context(|| format!("--out {}", out.display()))?;

    if versions.len() > 1 {
        let versions: Vec<_> = versions.iter().map(String::as_str).collect();
        note!("the runs were made by several versions of prime-agents: {}", versions.join(", "));
    }
    if !reconfigured.is_empty() {
        let systems: Vec<_> = reconfigured.iter().map(String::as_str).collect();
        note!("run with several configurations (config_hash): {}", systems.join(", "));
    }
    if unchecked > 0 {
        let runs = count(unchecked as u64, "run");
        note!("{runs} of users' own tasks could not be checked: the benchmark does not have them");
    }
    if *output == Output::Json {
        print_json(&json!({
            "file": out,
            "runs": records.len(),
            "systems": systems(&records),
            "checked": checked,
            "unchecked": unchecked,
            "repeated": repeated,
            "versions": versions,
            "reconfigured": reconfigured,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }

    let runs = count(records.len() as u64, "run");
    let systems = count(systems(&records) as u64, "system");
    let repeated = match repeated {
        0 => String::new(),
        repeated => format!("; {} counted once", count(repeated as u64, "repeated record")),
    };
    print(format!(
        "{}: {runs} of {systems}, {checked} checked against the benchmark{repeated}\n",
        out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
