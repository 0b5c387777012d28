//! Lists the devices that an engine could run on.
//!
//! A short-lived child process lists them: initialising a GPU backend takes memory on every GPU and
//! cannot be undone, so it must not happen in the daemon.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossbeam_channel::bounded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::wire::Frames;
use crate::worker::DEVICES;
use crate::worker_handle::{worker_command, worker_command_for};
use crate::{EngineError, EngineSpec};

/// How long a child may take to list its devices; initialising a GPU driver takes seconds.
const LISTING_TIMEOUT: Duration = Duration::from_mins(1);

/// A device as llama.cpp's backends name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name, for example `CUDA0`; for a GPU it is the one of [`super::Device::Cuda`].
    pub name: String,
    /// What the device is, for example the GPU's model.
    pub description: String,
    /// Its kind for llama.cpp.
    pub kind: DeviceKind,
    /// Its PCI id, if it has one.
    pub pci: Option<String>,
    /// Its memory, in bytes; 0 if unknown.
    pub memory_total_bytes: u64,
    /// Its free memory, in bytes; 0 if unknown.
    pub memory_free_bytes: u64,
}

/// llama.cpp's kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// The CPU.
    Cpu,
    /// A GPU with memory of its own.
    Gpu,
    /// An accelerator that assists the CPU.
    Other,
}

/// Lists the devices.
///
/// # Errors
/// [`EngineError::NotBuilt`] without llama.cpp; [`EngineError::WorkerDied`] or
/// [`EngineError::WorkerHung`] if the child does not report a list.
pub fn devices() -> Result<Vec<DeviceInfo>, EngineError> {
    devices_of(None)
}

/// Lists the devices that `worker` sees (the running binary if absent), run as
/// `<worker> engine-worker devices`.
///
/// # Errors
/// Like [`devices`].
pub fn devices_of(worker: Option<&PathBuf>) -> Result<Vec<DeviceInfo>, EngineError> {
    let mut command = worker_command(worker).map_err(|error| failed(&error))?;
    command.arg(DEVICES);
    list(command)
}

/// Lists the devices that the worker of `spec` sees: the CPU and the requested GPUs.
///
/// # Errors
/// Like [`devices`], and [`EngineError::DeviceMissing`] and [`EngineError::BadSpec`] for GPUs that
/// cannot be used.
pub(crate) fn devices_seen_by(spec: &EngineSpec) -> Result<Vec<DeviceInfo>, EngineError> {
    let mut command = worker_command_for(spec)?;
    command.arg(DEVICES);
    list(command)
}

fn failed(error: &io::Error) -> EngineError {
    EngineError::WorkerDied { detail: error.to_string() }
}

fn list(command: Command) -> Result<Vec<DeviceInfo>, EngineError> {
    if cfg!(not(feature = "llama")) { Err(EngineError::NotBuilt) } else { ask_child(command) }
}

/// Starts a child that writes one frame to its standard output, and reads the frame.
///
/// # Errors
/// [`EngineError::WorkerDied`] or [`EngineError::WorkerHung`] if the child writes none.
pub(crate) fn ask_child<T: DeserializeOwned>(command: Command) -> Result<T, EngineError> {
    ask_child_with(command, Vec::new())
}

/// Like [`ask_child`], for a child that reads `input` from its standard input.
///
/// # Errors
/// Like [`ask_child`].
pub(crate) fn ask_child_with<T: DeserializeOwned>(
    mut command: Command,
    input: Vec<u8>,
) -> Result<T, EngineError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(&error))?;

    // On a thread, because the child may answer before it has read everything, or not read at all.
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::Builder::new()
            .name("engine-child".to_owned())
            // A child that ends early says why in its answer.
            .spawn(move || drop(stdin.write_all(&input)))
            .map_err(|error| failed(&error))?;
    }

    let bytes = read_all(&mut child);
    // A child that sent its answer is done, and one that did not must end. Both must be waited for.
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(&error))?;

    let mut frames = Frames::default();
    frames.push(&bytes?);
    match frames.next() {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(EngineError::WorkerDied { detail: format!("it wrote nothing: {status}") }),
        Err(error) => Err(EngineError::WorkerDied { detail: format!("{error}: {status}") }),
    }
}

/// What a child writes to its standard output, if that ends in time.
fn read_all(child: &mut Child) -> Result<Vec<u8>, EngineError> {
    // Read on a thread, because reading from a pipe has no timeout.
    let (listed, listing) = bounded(1);
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::Builder::new()
            .name("engine-child".to_owned())
            .spawn(move || {
                let mut bytes = Vec::new();
                let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
                // After the timeout there is no receiver.
                let _ = listed.send(read);
            })
            .map_err(|error| failed(&error))?;
    }

    match listing.recv_timeout(LISTING_TIMEOUT) {
        Ok(bytes) => bytes.map_err(|error| failed(&error)),
        Err(_) => {
            let deadline_ms = u64::try_from(LISTING_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
            Err(EngineError::WorkerHung { deadline_ms })
        }
    }
}
