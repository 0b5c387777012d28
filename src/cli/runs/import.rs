//! `runs import`: gives a daemon a run that another one has exported.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use serde_json::Value;

use super::client::Post;
use super::{Common, show};
use crate::cli::output::{Output, print};

/// The most that any daemon takes, in bytes.
const BYTES_MAX: u64 = 1 << 30;

#[derive(Args)]
pub struct ImportArguments {
    /// The bundle, as `runs export --as bundle` writes it; - reads standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    common: Common,
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = file.display();
    let mut bundle = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(BYTES_MAX + 1).read_to_end(&mut bundle)
    } else {
        let opened = std::fs::File::open(file).with_context(|| shown.to_string())?;
        opened.take(BYTES_MAX + 1).read_to_end(&mut bundle)
    };
    read.with_context(|| shown.to_string())?;
    anyhow::ensure!(
        bundle.len() as u64 <= BYTES_MAX,
        "{shown}: it has more than {BYTES_MAX} bytes, which no daemon takes \
         (server.import_bytes_max)"
    );
    Ok(bundle)
}

pub fn import(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let ImportArguments { file, common } = arguments;
    let bundle = read(file)?;
    let post = Post {
        path: "/v1/runs/import",
        content: Some(("application/jsonl", &bundle)),
        is_long: true,
        // The same run is imported once.
        is_idempotent: true,
        ..Post::default()
    };
    let record = common.client()?.post(&post)?.json::<Value>()?;

    if common.output() == Output::Json {
        show::print(&record, Output::Json)?;
    } else {
        print(show::read(&record)?.id + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
