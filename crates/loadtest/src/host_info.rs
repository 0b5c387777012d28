//! Reads what the kernel says about the machine.

use std::fs;

use super::report::HostInfo;

/// The value of the first line with this name.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

/// This machine, as its kernel describes it.
pub fn host_info() -> HostInfo {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let names = rustix::system::uname();
    HostInfo {
        processor: processor(&read("/proc/cpuinfo")),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        system: format!(
            "{} {}",
            names.sysname().to_string_lossy(),
            names.release().to_string_lossy()
        ),
        load_average: load_average(&read("/proc/loadavg")),
    }
}

fn processor(cpuinfo: &str) -> String {
    field(cpuinfo, "model name").unwrap_or_default().to_owned()
}

fn memory_bytes(meminfo: &str) -> u64 {
    let kibibytes = field(meminfo, "MemTotal").and_then(|value| value.strip_suffix(" kB"));
    kibibytes.and_then(|number| number.trim().parse::<u64>().ok()).map_or(0, |number| number << 10)
}

fn load_average(loadavg: &str) -> f64 {
    loadavg.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: Acme\nmodel name\t: Acme 9000 @ 2.0GHz\n\
                       model name\t: other\n";
        assert_eq!(processor(cpuinfo), "Acme 9000 @ 2.0GHz");
        assert_eq!(memory_bytes("MemFree:  1 kB\nMemTotal:       16310328 kB\n"), 16_701_775_872);
        assert_eq!(load_average("0.52 0.58 0.59 1/467 12345\n"), 0.52);
        assert_eq!(
            (processor(""), memory_bytes("MemTotal: much"), load_average("")),
            (String::new(), 0, 0.0)
        );
    }
}
