//! `prime-agents tasks`: the client of a running daemon for the user's own tasks that are
//! WebAssembly modules.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueHint};
use serde::Deserialize;
use serde_json::Value;

use super::output::{Output, print, print_json};
use super::runs::{Common, Post, as_refusal};
use super::table::Table;
use prime_settings::is_name;

/// The largest module that a daemon can be configured to take, in bytes.
const MODULE_BYTES_MAX: u64 = 16 << 20;
/// Digits of a digest that are shown.
const DIGEST_SHOWN: usize = 12;

#[derive(Args)]
pub struct TasksArguments {
    #[command(subcommand)]
    command: TasksCommand,
}

#[derive(Subcommand)]
enum TasksCommand {
    /// Upload a WebAssembly module as a task, or as a new version of one
    Push(PushArguments),
    /// List the tasks of your own: those of the daemon's configuration and the uploaded ones
    List(ListArguments),
    /// Delete an uploaded task; open runs keep its module
    Delete(DeleteArguments),
}

#[derive(Args)]
struct PushArguments {
    /// The module
    #[arg(value_name = "FILE.wasm", value_hint = ValueHint::FilePath)]
    module: PathBuf,
    /// The task's name; by default the one that the module declares
    #[arg(long, value_parser = task_name)]
    name: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct ListArguments {
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct DeleteArguments {
    /// The task's name
    #[arg(value_parser = task_name)]
    task: String,
    #[command(flatten)]
    common: Common,
}

/// Checks that a name is safe within a path; that the task exists is checked by the daemon.
fn task_name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("give up to 64 lower-case letters, digits, `-` and `_`".to_owned())
    }
}

/// The bytes of a module.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = || format!("{} cannot be read", path.display());
    // First, because opening a pipe would wait for its writer.
    if !std::fs::metadata(path).with_context(shown)?.is_file() {
        bail!("{}: it is not a regular file", shown());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(shown)?;
    file.take(MODULE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(shown)?;
    if bytes.len() as u64 > MODULE_BYTES_MAX {
        bail!("{} has more than {MODULE_BYTES_MAX} bytes: no daemon takes it", path.display());
    }
    if !bytes.starts_with(b"\0asm") {
        bail!("{} is not a WebAssembly module", path.display());
    }
    Ok(bytes)
}

fn push(arguments: &PushArguments) -> anyhow::Result<ExitCode> {
    let PushArguments { module, name, common } = arguments;
    let module = read(module)?;
    let query: Vec<_> = name.iter().map(|name| ("name", name.clone())).collect();
    let uploaded: Value = common
        .client()?
        .post(&Post {
            path: "/v1/tasks",
            query: &query,
            content: Some(("application/wasm", &module)),
            is_idempotent: true,
            ..Post::default()
        })?
        .json()?;

    if common.output() == Output::Json {
        print_json(&uploaded)?;
    } else {
        let text = |field: &str| uploaded[field].as_str().unwrap_or_default().to_owned();
        print(format_args!("{} sha256:{}\n", text("task"), text("digest")))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Deserialize)]
struct Tasks {
    tasks: Vec<Value>,
}

fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let common = &arguments.common;
    let Tasks { mut tasks } = common.client()?.get("/v1/tasks", &[])?.json()?;
    tasks.retain(|task| task["category"] == "own");
    if common.output() == Output::Json {
        print_json(&tasks)?;
        return Ok(ExitCode::SUCCESS);
    }

    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = tasks.iter().map(|task| {
        let module = &task["module"];
        let digest = text(&module["digest"]).chars().take(DIGEST_SHOWN).collect();
        let bytes = module["bytes"].as_u64().map(|bytes| bytes.to_string()).unwrap_or_default();
        [text(&task["slug"]), text(&task["title"]), digest, bytes, text(&module["uploaded_at"])]
    });
    let table = Table::new(["task", "title", "module", "bytes", "uploaded"], rows);
    print(table)?;
    Ok(ExitCode::SUCCESS)
}

fn delete(arguments: &DeleteArguments) -> anyhow::Result<ExitCode> {
    let DeleteArguments { task, common } = arguments;
    common.client()?.delete(&format!("/v1/tasks/{task}"))?;
    Ok(ExitCode::SUCCESS)
}

pub fn tasks(arguments: &TasksArguments) -> anyhow::Result<ExitCode> {
    as_refusal(match &arguments.command {
        TasksCommand::Push(arguments) => push(arguments),
        TasksCommand::List(arguments) => list(arguments),
        TasksCommand::Delete(arguments) => delete(arguments),
    })
}
