//! Where an engine runs: names of devices, what is on this machine, and what a worker is bound to.

#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "only llama.cpp sees devices"))]
mod chosen;
mod device;
mod gpus;
mod list;
mod listing;
mod pci;

#[cfg(feature = "llama")]
pub(super) use chosen::choose;
pub use device::{Device, DeviceError};
pub(super) use gpus::Gpus;
pub use list::{Devices, DevicesError};
pub(super) use listing::devices_seen_by;
pub use listing::{DeviceInfo, DeviceKind, devices, devices_of};
pub use pci::PciId;
