//! The entry point of an engine's child process.
//!
//! Standard input is the socket to the parent. The process ends when the socket closes or the
//! parent dies, opens no files but the model and its adapters, and confines itself to that as far
//! as the kernel can.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use super::spec::Fault;
use super::transport::{Received, SocketTransport, Transport as _};
use super::wire::ToWorker;
use super::{EngineSpec, chat_child};

/// First argument of the hidden subcommand.
pub(super) const SUBCOMMAND: &str = "engine-worker";
/// Second argument that requests the list of devices.
pub(super) const DEVICES: &str = "devices";
/// Second argument that requests a check of a chat template.
pub(super) const CHAT: &str = "chat";

/// Second argument that requests the tokens of a prompt, whose messages are on the standard input.
pub(super) const TOKENS: &str = "tokens";

/// Exit code of a worker that was not started by an engine.
const MISUSED: u8 = 64;
/// Exit code of a worker whose context failed, and of a child that could not answer.
const FAILED: u8 = 87;

/// Runs the hidden subcommand `engine-worker`. A binary whose first argument is this name must call
/// it before anything else.
pub fn worker_main() -> ExitCode {
    match std::env::args_os().nth(2).as_deref().and_then(OsStr::to_str) {
        Some(DEVICES) => list_devices(),
        Some(CHAT) => {
            let arguments: Vec<OsString> = std::env::args_os().skip(3).collect();
            chat_child::answer(&chat_child::child(&arguments), FAILED)
        }
        Some(TOKENS) => tokens(std::env::args_os().nth(3)),
        // The parent's process id.
        Some(parent) => match parent.parse() {
            Ok(parent) => serve(parent),
            Err(_) => misused(),
        },
        None => misused(),
    }
}

fn misused() -> ExitCode {
    eprintln!("{SUBCOMMAND} is started by an engine, not by hand");
    ExitCode::from(MISUSED)
}

#[cfg(not(feature = "llama"))]
fn list_devices() -> ExitCode {
    misused()
}

#[cfg(feature = "llama")]
fn list_devices() -> ExitCode {
    super::ffi::keep_logs(super::ffi::Stderr::Errors);
    super::ffi::exit_on_abort();
    chat_child::answer(&super::model::devices(), FAILED)
}

#[cfg(not(feature = "llama"))]
fn tokens(_: Option<OsString>) -> ExitCode {
    misused()
}

#[cfg(feature = "llama")]
fn tokens(model: Option<OsString>) -> ExitCode {
    use std::io::Read as _;

    super::ffi::keep_logs(super::ffi::Stderr::Errors);
    super::ffi::exit_on_abort();
    let mut messages = Vec::new();
    match model {
        Some(model) if std::io::stdin().read_to_end(&mut messages).is_ok() => {
            chat_child::answer(&super::prompt_tokens::child(model.as_ref(), &messages), FAILED)
        }
        _ => misused(),
    }
}

fn serve(parent: i32) -> ExitCode {
    #[cfg(all(feature = "llama", target_os = "linux", target_arch = "x86_64"))]
    super::ffi::allow_tiles();

    // Both are needed: the signal ends a worker that is computing, the closed socket one that is
    // waiting.
    let bound =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // A parent that died before that is noticed because this process now has another one.
    let present = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if bound.is_err() || present != Some(parent) {
        return misused();
    }

    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return misused() };
    let mut transport = SocketTransport::new(UnixStream::from(socket));
    let Received::Frame(ToWorker::Start { spec, fault, stub_answer }) = transport.recv(true) else {
        return misused();
    };

    match stub_answer {
        Some(text) => {
            super::stub_worker::serve(&text, &mut transport);
            ExitCode::SUCCESS
        }
        None => decode(&spec, fault, transport),
    }
}

#[cfg(not(feature = "llama"))]
fn decode(_: &EngineSpec, _: Option<Fault>, _: SocketTransport) -> ExitCode {
    misused()
}

#[cfg(feature = "llama")]
fn decode(spec: &EngineSpec, fault: Option<Fault>, mut transport: SocketTransport) -> ExitCode {
    use super::{contexts, ffi};

    ffi::keep_logs(if spec.logs { ffi::Stderr::All } else { ffi::Stderr::Errors });
    ffi::exit_on_abort();
    // This comes before any part of the model is read, and while there is one thread.
    #[cfg(target_os = "linux")]
    super::confinement::confine_worker();

    match contexts::serve(spec, fault, &mut transport) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            eprintln!("{fatal}");
            // Exits instead of returning: freeing a context that failed can hang or abort.
            std::process::exit(i32::from(FAILED))
        }
    }
}
