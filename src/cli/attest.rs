//! `prime-agents attest`: checks attestations of runs without the daemon that signed them, and makes
//! keys for daemons.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::output::{Output, count, print, print_json};
use super::runs::{chain, print_record};
use prime_printable::printable_line;
use prime_service::attestation::{Attestation, AttestationKey, Envelope, PublicKey};

/// Longest attestation that is read, in bytes: its answer may be long.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Args)]
pub struct AttestArguments {
    #[command(subcommand)]
    command: AttestCommand,
}

#[derive(Subcommand)]
enum AttestCommand {
    /// Check an attestation, and show the run that it is about; exit code 0 if it holds
    Verify(VerifyArguments),
    /// Make a key for server.attestation_key_file, or show the public half of one
    Key(KeyArguments),
}

#[derive(Args)]
struct VerifyArguments {
    /// The attestation, as `runs attest` prints it
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The daemon's public key, as `attest key` prints it. It must come from the daemon's owner, not
    /// from the attestation
    #[arg(long, value_name = "ed25519:KEY")]
    key: PublicKey,
    /// The run's trace, as `runs trace --no-states` writes it: its events are checked against the
    /// signed chain
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
struct KeyArguments {
    /// The file; made if it does not exist, readable by its owner alone
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Reads an envelope.
fn read(path: &Path) -> anyhow::Result<Envelope> {
    let shown = path.display();
    let length = std::fs::metadata(path).with_context(|| shown.to_string())?.len();
    anyhow::ensure!(
        length <= BYTES_MAX,
        "{shown}: it has {length} bytes, and an attestation at most {BYTES_MAX}"
    );
    let text = std::fs::read(path).with_context(|| shown.to_string())?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{shown}: it is no attestation, as `runs attest` prints it"))
}

/// What in an attestation contradicts itself or the trace; `None` if nothing does.
fn contradiction(
    attestation: &Attestation,
    trace: Option<&Path>,
) -> anyhow::Result<Option<String>> {
    let record = &attestation.record;
    if !record.status.is_over() {
        return Ok(Some("the run was not over".to_owned()));
    }
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&attestation.spec) {
        return Ok(Some(format!("its spec is not JSON: {error}")));
    }
    let Some(path) = trace else { return Ok(None) };

    let file = File::open(path).with_context(|| format!("--trace {}", path.display()))?;
    let mut lines = BufReader::with_capacity(64 << 10, file);
    let (head, end) = match chain(&record.id, &mut lines, None) {
        Ok(read) => read,
        Err(error) => return Ok(Some(format!("the trace cannot be followed: {error}"))),
    };

    if head.seq != record.events {
        let events = count(head.seq, "event");
        return Ok(Some(format!("the trace has {events}, the signed record {}", record.events)));
    }
    if head.hash.to_string() != record.chain {
        return Ok(Some(format!(
            "the trace hashes to {}, and {} is signed: an event was changed, or the trace has \
             states (`runs trace --no-states` leaves them out)",
            head.hash, record.chain
        )));
    }
    Ok(end.contradiction(record.status, &record.result))
}

fn verify(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let VerifyArguments { file, key, trace, output } = arguments;
    let opened = read(file)?.open(*key);
    let checked = match &opened {
        Ok(attestation) => contradiction(attestation, trace.as_deref())?,
        Err(error) => Some(error.to_string()),
    };

    if *output == Output::Json {
        let attestation = opened.as_ref().ok();
        print_json(&json!({
            "holds": checked.is_none(),
            "reason": checked,
            "key": key.to_string(),
            "trace_checked": trace.is_some(),
            "issued_at": attestation.map(|attestation| &attestation.issued_at),
            "spec": attestation.map(|attestation| &attestation.spec),
            "record": attestation.map(|attestation| &attestation.record),
        }))?;
        return Ok(ExitCode::from(u8::from(checked.is_some())));
    }

    if let Some(reason) = checked {
        print(format!("{}: it does NOT hold: {}\n", file.display(), printable_line(&reason)))?;
        return Ok(ExitCode::FAILURE);
    }
    let attestation = opened?;
    let covered = match trace {
        Some(_) => ", and the trace has exactly the signed events",
        None => "; --trace FILE checks its events as well",
    };
    print(format!("signed by {key} at {}{covered}\n", printable_line(&attestation.issued_at)))?;
    print_record(&serde_json::to_value(&attestation.record)?, Output::Text)?;
    Ok(ExitCode::SUCCESS)
}

fn make_key(arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    let KeyArguments { file, output } = arguments;
    let is_new = !file.exists();
    let key = if is_new { AttestationKey::create(file)? } else { AttestationKey::read(file)? };

    let public = key.public();
    if *output == Output::Json {
        print_json(&json!({"file": file, "public_key": public.to_string(), "created": is_new}))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "{}For those who check attestations:\n{public}\n\nFor the daemon's configuration:\n\
         [server]\nattestation_key_file = {:?}\n",
        if is_new { "A new key, readable by its owner alone.\n\n" } else { "" },
        file.display().to_string(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub fn attest(arguments: &AttestArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        AttestCommand::Verify(arguments) => verify(arguments),
        AttestCommand::Key(arguments) => make_key(arguments),
    }
}
