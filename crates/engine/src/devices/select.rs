//! Finds an engine's devices among those that llama.cpp sees in a process.

use super::host_gpus::HostGpus;
use crate::{Device, DeviceInfo, DeviceKind, Devices, EngineError, Isolation};

/// The indices in `present` of the devices `wanted`, in the order wanted.
///
/// A worker process must see exactly the requested GPUs, because its environment hides all others.
/// Their names there start at `CUDA0`, so their number and PCI ids are checked instead. In a thread
/// the names are those of this process, and those of other backends than CUDA are the same
/// everywhere.
///
/// # Errors
/// [`EngineError::DeviceMissing`], with what is present.
pub(crate) fn select(
    wanted: &Devices,
    isolation: Isolation,
    present: &[DeviceInfo],
    gpus: &HostGpus,
) -> Result<Vec<usize>, EngineError> {
    let missing = || {
        let seen = present.iter().map(|device| format!("{} ({})", device.name, device.description));
        // The CPU is in both lists.
        let hidden = gpus.described().into_iter().filter(|name| name != "cpu");
        EngineError::DeviceMissing {
            device: wanted.to_string(),
            found: seen.chain(hidden).collect(),
        }
    };

    if wanted.is_cpu() {
        let cpu = present.iter().position(|device| device.kind == DeviceKind::Cpu);
        return cpu.map(|cpu| vec![cpu]).ok_or_else(missing);
    }

    if isolation == Isolation::Thread || wanted.all().iter().all(Device::is_of_backend) {
        let named = |device: &Device| {
            let name = device.to_string();
            present.iter().position(|present| present.name.eq_ignore_ascii_case(&name))
        };
        return wanted.all().iter().map(named).collect::<Option<_>>().ok_or_else(missing);
    }

    let seen: Vec<usize> =
        (0..present.len()).filter(|at| present[*at].kind == DeviceKind::Gpu).collect();
    let is_another = |(device, at): (&Device, &usize)| {
        let found = present[*at].pci.as_deref().and_then(|id| id.parse().ok());
        matches!((gpus.identity(device), found), (Some(asked), Some(found)) if asked != found)
    };

    if seen.len() != wanted.all().len() || wanted.all().iter().zip(&seen).any(is_another) {
        return Err(missing());
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: DeviceKind, pci: Option<&str>) -> DeviceInfo {
        DeviceInfo {
            name: name.to_owned(),
            description: format!("description of {name}"),
            kind,
            pci: pci.map(str::to_owned),
            memory_total_bytes: 1,
            memory_free_bytes: 1,
        }
    }

    /// Two GPUs and the CPU, as llama.cpp lists them.
    fn present() -> [DeviceInfo; 3] {
        [
            device("CUDA0", DeviceKind::Gpu, Some("0000:0a:00.0")),
            device("CUDA1", DeviceKind::Gpu, Some("0000:65:00.0")),
            device("CPU", DeviceKind::Cpu, None),
        ]
    }

    fn wanted(names: &[&str]) -> Devices {
        Devices::new(names.iter().map(|name| name.parse().unwrap()).collect()).unwrap()
    }

    #[test]
    fn a_process_must_see_exactly_the_requested_devices() {
        let both = present();
        let select = |names: &[&str], present: &[DeviceInfo]| {
            super::select(&wanted(names), Isolation::Process, present, &HostGpus::default())
        };

        assert_eq!(select(&["cpu"], &both), Ok(vec![2]));
        assert_eq!(
            select(&["CUDA5", "CUDA3"], &both),
            Ok(vec![0, 1]),
            "a process numbers its GPUs itself"
        );
        assert_eq!(select(&["pci:0a:00.0", "pci:65:00.0"], &both), Ok(vec![0, 1]));
        for (names, present) in [
            (&["CUDA0"][..], &both[..]),
            (&["CUDA0", "CUDA1"], &both[1..]),
            (&["CUDA0"], &both[2..]),
            (&["cpu"], &both[..2]),
            (&["pci:65:00.0", "pci:0a:00.0"], &both),
            (&["pci:66:00.0"], &both[1..]),
        ] {
            let Err(EngineError::DeviceMissing { device, found }) = select(names, present) else {
                panic!("{names:?}")
            };
            assert_eq!(device, names.join(" + ").replace("pci:", "pci:0000:"));
            assert_eq!(found.len(), present.len(), "{found:?}");
        }
    }

    #[test]
    fn a_gpu_without_a_pci_id_is_accepted() {
        let unknown = [device("CUDA0", DeviceKind::Gpu, None)];
        assert_eq!(
            select(&wanted(&["pci:65:00.0"]), Isolation::Process, &unknown, &HostGpus::default()),
            Ok(vec![0])
        );
    }

    #[test]
    fn a_thread_finds_gpus_by_the_names_of_its_process() {
        let both = present();
        let select = |names: &[&str]| {
            super::select(&wanted(names), Isolation::Thread, &both, &HostGpus::default())
        };
        assert_eq!(select(&["CUDA1", "CUDA0"]), Ok(vec![1, 0]));
        assert!(matches!(select(&["CUDA1", "CUDA2"]), Err(EngineError::DeviceMissing { .. })));
    }
}
