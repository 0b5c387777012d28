//! Asks what an engine would take, and whether it fits now, without loading its model.

use std::path::Path;

use super::shape::Shape;
use super::{host_memory, sums};
use crate::devices::devices_seen_by;
use crate::{DeviceInfo, DeviceKind, EngineError, EngineSpec, Needs, Room, gguf_check};

/// An engine that fits: what it would take, and what is free where it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// What it would take.
    pub needs: Needs,
    /// What is free on its devices, in their order; a device that does not tell is missing.
    pub rooms: Vec<Room>,
}

/// Looks at the model's header and at the devices of `spec`. Another process may take the memory before the engine
/// starts.
///
/// # Errors
/// [`EngineError::WontFit`], whatever is wrong with the file, and GPUs that are not there. [`EngineError::NotBuilt`] for
/// GPUs without llama.cpp.
pub fn needs(spec: &EngineSpec) -> Result<Fit, EngineError> {
    spec.check()?;
    let shape = Shape::new(&gguf_check::read(&spec.model)?);
    let rooms = if spec.device.is_cpu() {
        rooms(spec, &[])
    } else {
        let seen = devices_seen_by(spec)?;
        let gpus: Vec<&DeviceInfo> = seen.iter().filter(|device| device.kind == DeviceKind::Gpu).collect();
        if gpus.len() != spec.device.all().len() {
            let found = seen.iter().map(|device| format!("{} ({})", device.name, device.description)).collect();
            return Err(EngineError::DeviceMissing { device: spec.device.to_string(), found });
        }
        rooms(spec, &gpus)
    };
    Ok(Fit { needs: sums::check(spec, &shape, &rooms)?, rooms })
}

/// What is free on the devices of `spec`, which llama.cpp sees as `seen`.
pub(crate) fn rooms(spec: &EngineSpec, seen: &[&DeviceInfo]) -> Vec<Room> {
    if spec.device.is_cpu() {
        // ggml tells the machine's memory, whatever is left of it.
        let free = host_memory::available(Path::new("/"));
        return free.map(|free_bytes| Room { device: "cpu".to_owned(), free_bytes }).into_iter().collect();
    }
    let known = spec.device.all().iter().zip(seen).filter(|(_, seen)| seen.memory_total_bytes > 0);
    let room = |(device, seen): (&crate::Device, &&DeviceInfo)| Room {
        device: format!("{device} ({})", seen.description),
        free_bytes: seen.memory_free_bytes,
    };
    known.map(room).collect()
}
