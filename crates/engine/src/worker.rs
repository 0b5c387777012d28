//! What runs in an engine's child process.
//!
//! The socket to the parent is the standard input. The process ends when the socket closes or the parent dies, and it
//! opens no file but the model.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use super::EngineSpec;
use super::port::{Intake, Port as _, SocketPort};
use super::spec::Fault;
use super::wire::ToWorker;

/// First argument of the hidden subcommand.
pub(super) const SUBCOMMAND: &str = "engine-worker";
/// Second argument that asks for the list of devices; otherwise it is the parent's process id.
pub(super) const DEVICES: &str = "devices";

/// Exit code of a worker that was started wrongly.
const MISUSED: u8 = 64;
/// Exit code of a worker whose context failed.
#[cfg(feature = "llama")]
const FAILED: u8 = 87;

/// Runs the hidden subcommand `engine-worker`; the binary calls it before anything else when that is its first
/// argument.
pub fn worker_main() -> ExitCode {
    match std::env::args().nth(2).as_deref() {
        Some(DEVICES) => list_devices(),
        Some(parent) => match parent.parse() {
            Ok(parent) => serve(parent),
            Err(_) => misused(),
        },
        None => misused(),
    }
}

fn misused() -> ExitCode {
    eprintln!("{SUBCOMMAND} is started by the engine itself, not by hand");
    ExitCode::from(MISUSED)
}

#[cfg(not(feature = "llama"))]
fn list_devices() -> ExitCode {
    misused()
}

#[cfg(feature = "llama")]
fn list_devices() -> ExitCode {
    use std::io::Write as _;
    super::ffi::keep_logs(super::ffi::Stderr::Errors);
    super::ffi::exit_on_abort();
    let mut out = Vec::new();
    let written = super::wire::encode(&super::model::devices(), &mut out).is_ok();
    if written && std::io::stdout().write_all(&out).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

fn serve(parent: i32) -> ExitCode {
    // Both are needed: the signal ends a worker that computes, the closed socket one that waits.
    let bound = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let present = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if bound.is_err() || present != Some(parent) {
        return misused();
    }
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return misused() };
    let mut port = SocketPort::new(UnixStream::from(socket));
    let Intake::Frame(ToWorker::Start { spec, fault, echo }) = port.take(true) else { return misused() };
    match echo {
        Some(text) => {
            super::echo::serve(&text, &mut port);
            ExitCode::SUCCESS
        }
        None => decode(&spec, fault, port),
    }
}

#[cfg(not(feature = "llama"))]
fn decode(_: &EngineSpec, _: Option<Fault>, _: SocketPort) -> ExitCode {
    misused()
}

#[cfg(feature = "llama")]
fn decode(spec: &EngineSpec, fault: Option<Fault>, mut port: SocketPort) -> ExitCode {
    use super::{batching, ffi};

    ffi::keep_logs(if spec.logs { ffi::Stderr::All } else { ffi::Stderr::Errors });
    ffi::exit_on_abort();
    match batching::serve(spec, fault, &mut port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            eprintln!("{fatal}");
            // Not a return: freeing a context that failed can hang or abort.
            std::process::exit(i32::from(FAILED))
        }
    }
}
