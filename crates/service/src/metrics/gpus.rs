//! Metrics of the machine's GPUs, read on request.

use std::fmt::{Debug, Error};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::labels::Gpu;

/// A reading of a GPU. `None` where the driver reports nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuReading {
    /// Its index in the order of the PCI bus.
    pub index: u32,
    /// Its UUID, as `nvidia-smi -L` prints it.
    pub uuid: String,
    /// Memory in use, by all processes.
    pub memory_used_bytes: Option<u64>,
    /// Installed memory.
    pub memory_total_bytes: Option<u64>,
    /// Share of recent time in which a kernel ran, 0 to 1.
    pub utilisation: Option<f64>,
    /// Temperature in degrees Celsius.
    pub celsius: Option<u32>,
    /// Power draw in watts.
    pub watts: Option<f64>,
}

/// Reads GPUs. Called at each rendering, so it must take milliseconds at most.
pub trait GpuSource: Debug + Send + Sync + 'static {
    /// All GPUs visible to this process.
    fn read(&self) -> Vec<GpuReading>;
}

/// The gauges of all GPUs.
#[derive(Debug)]
pub(super) struct Gpus(pub(super) Box<dyn GpuSource>);

/// Name, help, unit, and the value of a reading.
type Row = (&'static str, &'static str, Option<Unit>, fn(&GpuReading) -> Option<f64>);

fn rows() -> [Row; 5] {
    let bytes = || Some(Unit::Bytes);
    [
        ("prime_gpu_memory_used", "GPU memory in use by any process.", bytes(), |gpu| {
            gpu.memory_used_bytes.map(|bytes| bytes as f64)
        }),
        ("prime_gpu_memory", "Total GPU memory.", bytes(), |gpu| {
            gpu.memory_total_bytes.map(|bytes| bytes as f64)
        }),
        (
            "prime_gpu_utilisation_ratio",
            "Share of the time in which the GPU ran a kernel.",
            None,
            |gpu| gpu.utilisation,
        ),
        ("prime_gpu_temperature", "Temperature of the GPU.", Some(Unit::Celsius), |gpu| {
            gpu.celsius.map(f64::from)
        }),
        (
            "prime_gpu_power",
            "Power that the GPU draws.",
            Some(Unit::Other("watts".to_owned())),
            |gpu| gpu.watts,
        ),
    ]
}

impl Collector for Gpus {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let gpus = self.0.read();

        for (name, help, unit, value) in rows() {
            let known: Vec<(&GpuReading, f64)> =
                gpus.iter().filter_map(|gpu| Some((gpu, value(gpu)?))).collect();
            // A family without samples would still be described.
            if known.is_empty() {
                continue;
            }

            let mut family =
                encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for (gpu, value) in known {
                let labels = Gpu { gpu: gpu.index, uuid: gpu.uuid.clone() };
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
