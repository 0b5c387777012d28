//! The host memory available to this process: what the kernel reports as available, within the
//! limits of its cgroups.

use std::path::Path;

/// Available bytes, read below `root` (`/`); `None` if the kernel does not report them.
pub(crate) fn available(root: &Path) -> Option<u64> {
    let meminfo = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kilobytes = field(&meminfo, "MemAvailable:")?;
    let limits = [version_two(root), version_one(root)];
    // The kernel's kB are 1024 bytes.
    Some(limits.into_iter().flatten().fold(kilobytes.saturating_mul(1024), u64::min))
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn number(path: &Path) -> Option<u64> {
    // `max` means no limit.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What remains of the tightest limit of the process's cgroup and its ancestors. Page cache counts
/// as used there, but the kernel reclaims it when memory is short.
fn version_two(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let top = root.join("sys/fs/cgroup");
    let left = |folder: &Path| {
        let limit = number(&folder.join("memory.max"))?;
        let used = number(&folder.join("memory.current"))?;
        let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        Some(limit.saturating_sub(used.saturating_sub(field(&stat, "file ").unwrap_or(0))))
    };

    let below = top.join(own);
    below.ancestors().take_while(|folder| folder.starts_with(&top)).filter_map(left).min()
}

fn version_one(root: &Path) -> Option<u64> {
    let folder = root.join("sys/fs/cgroup/memory");
    let limit = number(&folder.join("memory.limit_in_bytes"))?;
    let used = number(&folder.join("memory.usage_in_bytes"))?;
    let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    Some(limit.saturating_sub(used.saturating_sub(field(&stat, "total_cache ").unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str =
        "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n";

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_limit_applies() {
        let own = "sys/fs/cgroup/system.slice/prime-agents.service";
        let service = [
            ("proc/self/cgroup".to_owned(), "0::/system.slice/prime-agents.service\n"),
            (format!("{own}/memory.max"), "4000000000\n"),
            (format!("{own}/memory.current"), "1500000000\n"),
            (format!("{own}/memory.stat"), "anon 400000000\nfile 1100000000\nfile_mapped 7\n"),
            ("sys/fs/cgroup/system.slice/memory.max".to_owned(), "max\n"),
            ("sys/fs/cgroup/system.slice/memory.current".to_owned(), "1\n"),
        ];
        let service: Vec<(&str, &str)> =
            service.iter().map(|(path, text)| (path.as_str(), *text)).collect();

        let above = [
            ("sys/fs/cgroup/memory.max", "2000000000"),
            ("sys/fs/cgroup/memory.current", "1000000000"),
        ];

        let old = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000000"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "300000000"),
            ("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_cache 100000000\n"),
        ];

        let unlimited = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1"),
        ];

        for (files, bytes) in [
            (vec![], 8_192_000_000),
            (service.clone(), 3_600_000_000),
            ([service, above.to_vec()].concat(), 1_000_000_000),
            (old.to_vec(), 300_000_000),
            (unlimited.to_vec(), 8_192_000_000),
            (vec![("sys/fs/cgroup/memory.max", "5"), ("sys/fs/cgroup/memory.current", "9")], 0),
        ] {
            let files = [vec![("proc/meminfo", MEMINFO)], files].concat();
            assert_eq!(available(host(&files).path()), Some(bytes), "{files:?}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_report_is_unknown() {
        assert_eq!(available(host(&[]).path()), None);
        assert_eq!(available(host(&[("proc/meminfo", "MemTotal: 5 kB\n")]).path()), None);
    }
}
