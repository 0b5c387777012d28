//! Lists the devices that an engine could run on.
//!
//! Asks a short-lived child: initialising a GPU backend takes memory on every GPU and cannot be undone, so it must not
//! happen in the daemon.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crossbeam_channel::bounded;
use serde::{Deserialize, Serialize};

use crate::link::{bound_command, worker_command};
use crate::wire::Frames;
use crate::worker::DEVICES;
use crate::{EngineError, EngineSpec};

/// How long a child may take to list its devices; a GPU driver that wakes up takes seconds.
const LISTING_TIMEOUT: Duration = Duration::from_mins(1);

/// A device as llama.cpp's backends name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name, for example `CUDA0`; for a GPU the one that [`super::Device::Cuda`] takes.
    pub name: String,
    /// What the device is, for example the GPU's model.
    pub description: String,
    /// What it is to llama.cpp.
    pub kind: DeviceKind,
    /// Its place on the PCI bus, if it has one.
    pub pci: Option<String>,
    /// Its memory, in bytes; 0 if unknown.
    pub memory_total_bytes: u64,
    /// Its memory that is free now, in bytes; 0 if unknown.
    pub memory_free_bytes: u64,
}

/// What a device is to llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU with memory of its own.
    Gpu,
    /// Something that helps the processor.
    Other,
}

/// Lists the devices.
///
/// # Errors
/// [`EngineError::NotBuilt`] without llama.cpp; [`EngineError::WorkerDied`] or [`EngineError::WorkerHung`] if the
/// child does not give a list.
pub fn devices() -> Result<Vec<DeviceInfo>, EngineError> {
    devices_of(None)
}

/// Lists the devices that `worker` sees (the running binary if absent), run as `<worker> engine-worker devices`.
///
/// # Errors
/// As [`devices`].
pub fn devices_of(worker: Option<&PathBuf>) -> Result<Vec<DeviceInfo>, EngineError> {
    list(worker_command(worker).map_err(|error| failed(&error))?)
}

/// Lists the devices that the worker of `spec` sees: the processor and the GPUs asked for.
///
/// # Errors
/// As [`devices`], and [`EngineError::DeviceMissing`] and [`EngineError::BadSpec`] for GPUs that cannot be.
pub(crate) fn devices_seen_by(spec: &EngineSpec) -> Result<Vec<DeviceInfo>, EngineError> {
    list(bound_command(spec)?)
}

fn failed(error: &io::Error) -> EngineError {
    EngineError::WorkerDied { detail: error.to_string() }
}

fn list(mut command: Command) -> Result<Vec<DeviceInfo>, EngineError> {
    if cfg!(not(feature = "llama")) {
        return Err(EngineError::NotBuilt);
    }
    command.arg(DEVICES).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let (listed, listing) = bounded(1);
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::Builder::new()
            .name("engine-devices".to_owned())
            .spawn(move || {
                let mut bytes = Vec::new();
                let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
                // Nobody waits any more after the timeout.
                let _ = listed.send(read);
            })
            .map_err(|error| failed(&error))?;
    }
    let bytes = listing.recv_timeout(LISTING_TIMEOUT);
    // After the list the child has nothing left to do, and without one it must not go on.
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(&error))?;
    let Ok(bytes) = bytes else {
        let deadline_ms = u64::try_from(LISTING_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        return Err(EngineError::WorkerHung { deadline_ms });
    };
    let mut frames = Frames::default();
    frames.push(&bytes.map_err(|error| failed(&error))?);
    match frames.next() {
        Ok(Some(devices)) => Ok(devices),
        Ok(None) => Err(EngineError::WorkerDied { detail: format!("it listed no devices: {status}") }),
        Err(error) => Err(EngineError::WorkerDied { detail: format!("{error}: {status}") }),
    }
}
