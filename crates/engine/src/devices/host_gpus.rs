//! The NVIDIA GPUs that this process may use, according to driver and environment, and the mapping
//! of devices to them.
//!
//! CUDA accepts indices and UUIDs, so a PCI id is looked up in the driver's tree below `/proc`.
//! Without that tree (in some sandboxes), indices and UUIDs still work.

use std::path::Path;

use super::pci::PciId;
use crate::{Device, Devices, EngineError};

/// A GPU in the driver's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub(crate) pci: PciId,
    /// Unknown until the driver has initialised the GPU.
    uuid: Option<String>,
}

/// The host's GPUs, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostGpus {
    /// The GPUs in the driver's tree, in PCI bus order.
    found: Vec<Gpu>,
    /// The entries of `CUDA_VISIBLE_DEVICES`, if this process has the variable.
    visible: Option<Vec<String>>,
}

impl HostGpus {
    /// Reads the tree below `root` (`/`); `visible` is this process's `CUDA_VISIBLE_DEVICES`.
    pub(crate) fn read(root: &Path, visible: Option<&str>) -> Self {
        let tree = root.join("proc/driver/nvidia/gpus");
        let entries = std::fs::read_dir(tree).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<Gpu> = entries
            .filter_map(|entry| {
                let pci = entry.file_name().to_str()?.parse().ok()?;
                let text =
                    std::fs::read_to_string(entry.path().join("information")).unwrap_or_default();
                Some(Gpu { pci, uuid: uuid_of(&text) })
            })
            .collect();
        found.sort_unstable_by_key(|gpu| gpu.pci);

        let entries = |list: &str| {
            // The first invalid entry ends the list, as in CUDA.
            let entries = list.split(',').map(str::trim);
            entries
                .take_while(|entry| !entry.is_empty() && !entry.starts_with('-'))
                .map(str::to_owned)
                .collect()
        };

        Self { found, visible: visible.map(entries) }
    }

    /// The value of `CUDA_VISIBLE_DEVICES` with which a process sees only these devices, in this
    /// order.
    ///
    /// # Errors
    /// [`EngineError::DeviceMissing`] for a device that is known to be absent, and
    /// [`EngineError::BadSpec`] for names that CUDA does not accept together.
    pub(crate) fn bind(&self, devices: &Devices) -> Result<String, EngineError> {
        if devices.is_cpu() {
            // An empty value hides every GPU.
            return Ok(String::new());
        }

        let of_backends = devices.all().iter().filter(|device| device.is_of_backend()).count();
        if of_backends == devices.all().len() {
            return Ok(String::new());
        }
        if of_backends > 0 {
            let detail = format!(
                "device: a model is split among GPUs of one backend, and {devices} are of several: \
                 name those of one"
            );
            return Err(EngineError::BadSpec { detail });
        }

        let entries =
            devices.all().iter().map(|device| self.entry(device)).collect::<Result<Vec<_>, _>>()?;
        let is_index = |entry: &String| entry.bytes().all(|b| b.is_ascii_digit());
        if entries.iter().any(is_index) && !entries.iter().all(is_index) {
            return Err(EngineError::BadSpec {
                detail: format!(
                    "device: CUDA accepts no mixture of indices and UUIDs, name all of {devices} \
                     in one way"
                ),
            });
        }

        if let Some(at) = (1..entries.len()).find(|at| entries[..*at].contains(&entries[*at])) {
            let detail = format!(
                "device: {} names a GPU that is already in the list {devices}",
                devices.all()[at]
            );
            return Err(EngineError::BadSpec { detail });
        }

        Ok(entries.join(","))
    }

    /// The entry of `CUDA_VISIBLE_DEVICES` for this GPU.
    fn entry(&self, device: &Device) -> Result<String, EngineError> {
        let missing =
            || EngineError::DeviceMissing { device: device.to_string(), found: self.described() };
        match device {
            Device::Cpu | Device::Backend(..) => Err(missing()),
            Device::Uuid(uuid) => Ok(uuid.clone()),
            Device::Pci(id) => self
                .found
                .iter()
                .find(|gpu| gpu.pci == *id)
                .and_then(|gpu| gpu.uuid.clone())
                .ok_or_else(missing),
            Device::Cuda(index) => match &self.visible {
                Some(entries) => entries.get(*index as usize).cloned().ok_or_else(missing),
                // There cannot be more GPUs than in the tree, only fewer: a container may hide
                // some.
                None if !self.found.is_empty() && *index as usize >= self.found.len() => {
                    Err(missing())
                }
                None => Ok(index.to_string()),
            },
        }
    }

    /// The PCI id that a device must have, if known. An index does not identify a GPU: in a
    /// container the driver may hide GPUs that its tree still lists.
    pub(crate) fn identity(&self, device: &Device) -> Option<PciId> {
        match device {
            Device::Pci(id) => Some(*id),
            Device::Uuid(uuid) => {
                self.found.iter().find(|gpu| gpu.uuid.as_ref() == Some(uuid)).map(|gpu| gpu.pci)
            }
            Device::Cpu | Device::Cuda(_) | Device::Backend(..) => None,
        }
    }

    /// The GPUs of the host, and those visible to this process, for messages.
    pub(crate) fn described(&self) -> Vec<String> {
        let gpu = |gpu: &Gpu| {
            format!("pci:{} ({})", gpu.pci, gpu.uuid.as_deref().unwrap_or("UUID unknown"))
        };

        let mut all = vec!["cpu".to_owned()];
        match &self.visible {
            Some(entries) if entries.is_empty() => {
                all.push("no GPU, because CUDA_VISIBLE_DEVICES is empty".to_owned());
            }
            Some(entries) => {
                all.extend(
                    entries
                        .iter()
                        .enumerate()
                        .map(|(index, entry)| format!("CUDA{index} (GPU {entry})")),
                );
            }
            None => {}
        }

        all.extend(self.found.iter().map(gpu));
        all
    }
}

/// The UUID in a GPU's `information`. The driver writes question marks until it has initialised the
/// GPU.
fn uuid_of(information: &str) -> Option<String> {
    let line = information.lines().find_map(|line| line.strip_prefix("GPU UUID:"))?;
    match line.trim().parse() {
        Ok(Device::Uuid(uuid)) => Some(uuid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "GPU-11111111-1111-1111-1111-111111111111";
    const SECOND: &str = "GPU-22222222-2222-2222-2222-222222222222";
    const SLICE: &str = "MIG-33333333-3333-3333-3333-333333333333";

    /// A host with three GPUs; the driver does not know the third one's UUID.
    fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (id, uuid) in [
            ("0000:c1:00.0", "GPU-????????-????-????-????-????????????"),
            ("0000:65:00.0", SECOND),
            ("0000:0a:00.0", FIRST),
        ] {
            let folder = root.path().join("proc/driver/nvidia/gpus").join(id);
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 123\nGPU UUID: \t {uuid}\n\
                 Video BIOS: \t 96.00.74\n\
                 Bus Type: \t PCIe\nBus Location: \t {id}\nDevice Minor: \t 0\n"
            );
            std::fs::write(folder.join("information"), text).unwrap();
        }
        root
    }

    fn devices(names: &[&str]) -> Devices {
        Devices::new(names.iter().map(|name| name.parse().unwrap()).collect()).unwrap()
    }

    #[test]
    fn devices_map_to_entries_for_cuda() {
        let root = host();
        for (visible, names, bound) in [
            (None, &["cpu"][..], ""),
            (Some("0,1"), &["cpu"], ""),
            (None, &["CUDA0"], "0"),
            (None, &["CUDA2", "CUDA0"], "2,0"),
            (None, &["pci:65:00.0"], SECOND),
            (None, &["pci:65:00.0", FIRST], &format!("{SECOND},{FIRST}")),
            (None, &[SLICE], SLICE),
            (Some("2, 0"), &["CUDA1"], "0"),
            (Some("2,0"), &["CUDA0", "CUDA1"], "2,0"),
            (Some(SLICE), &["CUDA0"], SLICE),
            (
                Some(&format!("{SECOND},{FIRST}")),
                &["CUDA1", "pci:0000:65:00.0"],
                &format!("{FIRST},{SECOND}"),
            ),
        ] {
            let gpus = HostGpus::read(root.path(), visible);
            assert_eq!(gpus.bind(&devices(names)), Ok(bound.to_owned()), "{visible:?} {names:?}");
        }
    }

    #[test]
    fn a_missing_gpu_is_reported_with_those_present() {
        let root = host();
        for (visible, name, there) in [
            (None, "CUDA3", FIRST),
            (None, "pci:66:00.0", "pci:0000:65:00.0"),
            (None, "pci:c1:00.0", "UUID unknown"),
            (Some("1"), "CUDA1", "CUDA0 (GPU 1)"),
            (Some("0,-1,1"), "CUDA1", "CUDA0 (GPU 0)"),
            (Some(""), "CUDA0", "CUDA_VISIBLE_DEVICES is empty"),
        ] {
            let error = HostGpus::read(root.path(), visible).bind(&devices(&[name])).unwrap_err();
            let EngineError::DeviceMissing { device, found } = &error else { panic!("{error}") };
            assert_eq!(device.parse::<Device>(), name.parse());
            assert!(found.iter().any(|line| line.contains(there)), "{name}: {found:?}");
        }
    }

    #[test]
    fn names_that_cuda_does_not_accept_together_are_refused() {
        let root = host();
        let both = format!("{FIRST},{SECOND}");
        for (visible, names, part) in [
            (None, ["CUDA0", SECOND], "in one way"),
            (None, ["pci:65:00.0", SECOND], "already"),
            (Some(both.as_str()), ["CUDA0", FIRST], "already"),
        ] {
            let error = HostGpus::read(root.path(), visible).bind(&devices(&names)).unwrap_err();
            assert!(
                matches!(&error, EngineError::BadSpec { detail } if detail.contains(part)),
                "{names:?}: {error}"
            );
        }
    }

    #[test]
    fn without_the_drivers_tree_indices_and_uuids_still_work() {
        let root = tempfile::tempdir().unwrap();
        let gpus = HostGpus::read(root.path(), None);
        assert_eq!(gpus.bind(&devices(&["CUDA7"])), Ok("7".to_owned()));
        assert_eq!(gpus.bind(&devices(&[FIRST])), Ok(FIRST.to_owned()));
        assert!(matches!(
            gpus.bind(&devices(&["pci:65:00.0"])),
            Err(EngineError::DeviceMissing { .. })
        ));
    }

    #[test]
    fn only_what_names_a_card_has_an_identity() {
        let root = host();
        let gpus = HostGpus::read(root.path(), None);
        let identity = |name: &str| gpus.identity(&name.parse().unwrap()).map(|id| id.to_string());
        assert_eq!(identity(SECOND).as_deref(), Some("0000:65:00.0"));
        assert_eq!(identity("pci:0a:00.0").as_deref(), Some("0000:0a:00.0"));
        for name in ["cpu", "CUDA0", SLICE, "GPU-44444444-4444-4444-4444-444444444444"] {
            assert_eq!(identity(name), None, "{name}");
        }
    }
}
