//! Reads GPUs through NVIDIA's management library (NVML), which is loaded at run time from the
//! installed driver.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;

use super::{GpuReading, GpuSource};

/// The GPUs of this machine; `None` without an NVIDIA driver.
pub fn nvidia_gpus() -> Option<Box<dyn GpuSource>> {
    match Nvml::init() {
        Ok(nvml) => Some(Box::new(nvml)),
        Err(error) => {
            tracing::debug!(%error, "NVML is not available: no GPU metrics");
            None
        }
    }
}

impl GpuSource for Nvml {
    fn read(&self) -> Vec<GpuReading> {
        let read = |index: u32| {
            let gpu = self.device_by_index(index).ok()?;
            // Unsupported measurements, and GPUs partitioned by MIG, return errors.
            let memory = gpu.memory_info().ok();
            Some(GpuReading {
                index,
                uuid: gpu.uuid().ok()?,
                memory_used_bytes: memory.as_ref().map(|memory| memory.used),
                memory_total_bytes: memory.as_ref().map(|memory| memory.total),
                utilisation: gpu.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
                celsius: gpu.temperature(TemperatureSensor::Gpu).ok(),
                watts: gpu.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1000.0),
            })
        };
        (0..self.device_count().unwrap_or(0)).filter_map(read).collect()
    }
}
