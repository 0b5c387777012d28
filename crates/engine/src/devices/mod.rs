//! Devices: their names, which exist on this machine, and what a worker is bound to.

mod device;
mod device_list;
mod enumerate;
mod host_gpus;
mod pci;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "only llama.cpp sees devices"))]
mod select;

pub use device::{Device, DeviceError, GpuBackend};
pub use device_list::{Devices, DevicesError};
pub use enumerate::{DeviceInfo, DeviceKind, devices, devices_of};
pub(super) use enumerate::{ask_child, ask_child_with, devices_seen_by};
pub(super) use host_gpus::HostGpus;
pub use pci::PciId;
#[cfg(feature = "llama")]
pub(super) use select::select;
