//! Limits the memory that a template of a foreign file may take while it is rendered: a text that
//! doubles in a loop needs few steps. Past the limit an allocation fails, which ends the process:
//! this is for processes that may end.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory that rendering may take beyond what the process has, in bytes.
const RENDERING_BYTES: u64 = 1 << 30;

/// The size of this process's address space in bytes, as Linux reports it.
fn address_space() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kibibytes: u64 = size.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// Runs `render` with the limit. Where no limit can be set, it runs without one.
pub(super) fn within<T>(render: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    let most = address_space().map(|bytes| bytes.saturating_add(RENDERING_BYTES));
    let current = match (most, before.current) {
        (Some(most), Some(now)) => Some(most.min(now)),
        (most, now) => most.or(now),
    };

    let is_set = setrlimit(Resource::As, Rlimit { current, ..before }).is_ok();
    let rendered = render();
    if is_set {
        // Raising the limit to what it was is always allowed.
        let _ = setrlimit(Resource::As, before);
    }
    rendered
}
