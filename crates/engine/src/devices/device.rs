//! Names of devices, as users write them. Says nothing about whether a device exists.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::pci::PciId;

/// Where an engine's model runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "device")))]
pub enum Device {
    /// The CPU.
    Cpu,
    /// `CUDA<n>`: the n-th GPU in PCI bus order, from 0; if this process has
    /// `CUDA_VISIBLE_DEVICES`, the n-th of that list.
    Cuda(u32),
    /// A GPU, or a slice of one, by UUID: `GPU-…` or `MIG-…` with a full UUID.
    Uuid(String),
    /// A GPU by its PCI id, `pci:0000:65:00.0`.
    Pci(PciId),
    /// A GPU of another backend than CUDA, by the backend's own number.
    Backend(GpuBackend, u32),
}

/// A backend of llama.cpp other than CUDA, in programs that are built with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuBackend {
    /// Apple's Metal: `MTL0`.
    Metal,
    /// AMD's ROCm: `ROCm0`.
    Rocm,
    /// Vulkan: `Vulkan0`.
    Vulkan,
}

impl GpuBackend {
    const ALL: [Self; 3] = [Self::Metal, Self::Rocm, Self::Vulkan];

    /// What llama.cpp's names of its devices begin with.
    fn name(self) -> &'static str {
        match self {
            Self::Metal => "MTL",
            Self::Rocm => "ROCm",
            Self::Vulkan => "Vulkan",
        }
    }
}

impl Device {
    /// Returns whether this is a MIG slice, of which a process can use only one.
    pub(crate) fn is_slice(&self) -> bool {
        matches!(self, Self::Uuid(uuid) if uuid.starts_with("MIG-"))
    }

    /// Returns whether llama.cpp finds it by its name; CUDA's GPUs are chosen through the
    /// environment.
    pub(crate) fn is_of_backend(&self) -> bool {
        matches!(self, Self::Backend(..))
    }
}

/// The text does not name a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no device is called `{0}`; use `cpu`, `CUDA0`, `CUDA1`, …, a full GPU UUID as `nvidia-smi -L` \
    prints it, a PCI id such as `pci:0000:65:00.0`, or `MTL0`, `ROCm0` or `Vulkan0` in a program \
    built with that backend"
)]
pub struct DeviceError(pub String);

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let refuse = || DeviceError(text.to_owned());
        let upper = text.to_ascii_uppercase();
        if upper == "CPU" {
            return Ok(Self::Cpu);
        }

        let number = |index: &str| -> Option<u32> {
            // `parse` would accept a sign, which has no place here.
            let plain = index.len() <= 3 && index.bytes().all(|b| b.is_ascii_digit());
            index.parse().ok().filter(|_| plain)
        };
        if let Some(index) = upper.strip_prefix("CUDA") {
            return number(index).map(Self::Cuda).ok_or_else(refuse);
        }
        for backend in GpuBackend::ALL {
            if let Some(index) = upper.strip_prefix(&backend.name().to_ascii_uppercase()) {
                return number(index).map(|index| Self::Backend(backend, index)).ok_or_else(refuse);
            }
        }

        if let Some(id) = upper.strip_prefix("PCI:") {
            return id.parse().map(Self::Pci).map_err(|_| refuse());
        }

        let uuid =
            upper.strip_prefix("GPU-").or_else(|| upper.strip_prefix("MIG-")).ok_or_else(refuse)?;
        let groups: Vec<&str> = uuid.split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        if lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|b| b.is_ascii_hexdigit()) {
            // CUDA_VISIBLE_DEVICES needs the prefix in upper case and the digits in lower case, as
            // the driver prints them.
            Ok(Self::Uuid(format!("{}-{}", &upper[..3], uuid.to_ascii_lowercase())))
        } else {
            Err(refuse())
        }
    }
}

impl TryFrom<String> for Device {
    type Error = DeviceError;

    fn try_from(text: String) -> Result<Self, DeviceError> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "CUDA{index}"),
            Self::Uuid(uuid) => f.write_str(uuid),
            Self::Pci(id) => write!(f, "pci:{id}"),
            Self::Backend(backend, index) => write!(f, "{}{index}", backend.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_parse_in_any_case_and_print_in_one() {
        for (text, printed) in [
            ("cpu", "cpu"),
            ("CPU", "cpu"),
            ("CUDA0", "CUDA0"),
            ("cuda12", "CUDA12"),
            (
                "GPU-8F2C1B6E-0d5a-4c5e-9b5f-1f2e3d4c5b6a",
                "GPU-8f2c1b6e-0d5a-4c5e-9b5f-1f2e3d4c5b6a",
            ),
            (
                "mig-8f2c1b6e-0d5a-4c5e-9b5f-1f2e3d4c5b6a",
                "MIG-8f2c1b6e-0d5a-4c5e-9b5f-1f2e3d4c5b6a",
            ),
            ("pci:0000:65:00.0", "pci:0000:65:00.0"),
            ("PCI:C1:00.0", "pci:0000:c1:00.0"),
            ("mtl0", "MTL0"),
            ("rocm1", "ROCm1"),
            ("vulkan12", "Vulkan12"),
        ] {
            let device: Device = text.parse().unwrap();
            assert_eq!(device.to_string(), printed);
            assert_eq!(printed.parse::<Device>().unwrap(), device);
        }
    }

    #[test]
    fn other_text_is_refused_with_a_hint() {
        for text in [
            "",
            "gpu",
            "0",
            "CUDA",
            "CUDA-1",
            "CUDA+1",
            "CUDA9999",
            "GPU-",
            "GPU-8f2c",
            "GPU-\u{e9}",
            "cpu ",
            "pci:",
            "65:00.0",
            "Vulkan",
            "MTL-1",
        ] {
            let error = text.parse::<Device>().unwrap_err().to_string();
            assert!(error.contains("`cpu`, `CUDA0`"), "{error}");
        }
    }
}
