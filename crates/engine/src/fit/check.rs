//! Checks whether an engine would fit now, without loading its model.

use std::path::Path;

use super::model_shape::ModelShape;
use super::{estimate, fitted, host_memory};
use crate::devices::devices_seen_by;
use crate::{DeviceInfo, DeviceKind, EngineError, EngineSpec, FreeMemory, MemoryEstimate, gguf};

/// An engine that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The memory that it needs.
    pub estimate: MemoryEstimate,
    /// The memory that is free on its devices, in order, without devices that do not report it.
    pub free: Vec<FreeMemory>,
    /// What `fit` or `gpu_layers` chose, in words; none if all is as specified.
    pub chosen: Option<String>,
    /// True if its weights are those of another engine, which counts them.
    pub shares_weights: bool,
}

/// Reads the model's header and compares the estimate with what is free on the devices of `spec`.
/// Another process may take that memory before the engine starts.
///
/// # Errors
/// [`EngineError::WontFit`], and errors of the file, the adapters and the devices.
/// [`EngineError::NotBuilt`] for GPUs without llama.cpp.
pub fn check_fit(spec: &EngineSpec) -> Result<Fit, EngineError> {
    check_fit_beside(spec, &[])
}

/// Checks a context beside `others`, which fit: those with the same model share its weights, and
/// those on the same devices have taken their part of the free memory.
///
/// # Errors
/// Like [`check_fit`].
pub fn check_fit_beside(
    spec: &EngineSpec,
    others: &[(EngineSpec, Fit)],
) -> Result<Fit, EngineError> {
    spec.check()?;
    let header = gguf::read_model(&spec.model)?;
    for adapter in &spec.adapters {
        adapter.check(&spec.model, &header)?;
    }
    let mut shape = ModelShape::new(&header);
    let shares_weights = others.iter().any(|(other, _)| spec.shares_weights_with(other));
    if shares_weights {
        shape = shape.without_weights();
    }
    shape.add_adapters(&spec.adapters);

    let mut free = if spec.device.is_cpu() {
        free_memory(spec, &[])
    } else {
        let seen = devices_seen_by(spec)?;
        let gpus: Vec<&DeviceInfo> = seen.iter().filter(|device| is_wanted(spec, device)).collect();
        // The child sees nothing but the requested GPUs, so a lower count means that some are
        // missing.
        if gpus.len() != spec.device.all().len() {
            let found = seen
                .iter()
                .map(|device| format!("{} ({})", device.name, device.description))
                .collect();
            return Err(EngineError::DeviceMissing { device: spec.device.to_string(), found });
        }
        free_memory(spec, &gpus)
    };
    let devices = spec.device.all().len().max(1);
    for (_, fit) in others.iter().filter(|(other, _)| other.device == spec.device) {
        let taken = fit.estimate.total_bytes(devices) / devices as u64;
        for device in &mut free {
            device.free_bytes = device.free_bytes.saturating_sub(taken);
        }
    }

    let host = free_host_memory();
    let fitted = fitted::fitted(spec, &shape, &free, host);
    let chosen = fitted::chosen(spec, &fitted, &shape);
    let mut estimate = estimate::check(&fitted, &shape, &free, host)?;
    if shares_weights {
        // The worker is the other engine's, too.
        estimate.reserve_bytes = 0;
    }
    Ok(Fit { estimate, free, chosen, shares_weights })
}

/// Returns whether a device that the child of `spec` sees is one of its own: all of CUDA's, and
/// those of other backends that it names.
fn is_wanted(spec: &EngineSpec, device: &DeviceInfo) -> bool {
    let is_named = |wanted: &crate::Device| wanted.to_string() == device.name;
    let of_backends = spec.device.all().iter().all(crate::Device::is_of_backend);
    if of_backends {
        spec.device.all().iter().any(is_named)
    } else {
        device.kind == DeviceKind::Gpu
    }
}

/// The free memory of the host, for what stays there while the rest is on GPUs.
pub(crate) fn free_host_memory() -> Option<u64> {
    host_memory::available(Path::new("/"))
}

/// The free memory of the devices of `spec`, which llama.cpp sees as `seen`.
pub(crate) fn free_memory(spec: &EngineSpec, seen: &[&DeviceInfo]) -> Vec<FreeMemory> {
    if spec.device.is_cpu() {
        // ggml reports the machine's total memory as free.
        let free = host_memory::available(Path::new("/"));
        return free
            .map(|free_bytes| FreeMemory { device: "cpu".to_owned(), free_bytes })
            .into_iter()
            .collect();
    }

    // A total of 0 means that the backend does not report memory.
    let known = spec.device.all().iter().zip(seen).filter(|(_, seen)| seen.memory_total_bytes > 0);
    let free = |(device, seen): (&crate::Device, &&DeviceInfo)| FreeMemory {
        device: format!("{device} ({})", seen.description),
        free_bytes: seen.memory_free_bytes,
    };
    known.map(free).collect()
}
