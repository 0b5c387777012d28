//! Signals that ask the process to stop. One that is ignored when the process starts stays ignored:
//! `nohup` and shells that start a command in the background ignore signals so that the command
//! survives them.

use std::future::pending;
use std::io;
use std::sync::LazyLock;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that were ignored when the first listener was made, before it changed anything: bit
/// n−1 for signal n.
static IGNORED: LazyLock<u64> = LazyLock::new(|| {
    // Linux tells it there alone without unsafe code. Elsewhere, and without /proc, every signal is
    // handled.
    std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_in(&status))
});

/// The ignored signals in the text of a process's status.
fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn has(mask: u64, kind: SignalKind) -> bool {
    let bit = u32::try_from(kind.as_raw_value()).ok().and_then(|number| number.checked_sub(1));
    bit.and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

/// Handles SIGXFSZ, which would end the process at a write beyond the limit on file sizes
/// (`ulimit -f`). The write then fails as on a full disk. Must be called within a Tokio runtime.
pub fn handle_file_size_signal() {
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays installed when the listener is dropped.
    if let Err(error) = signal(kind) {
        tracing::warn!(%error, "cannot handle SIGXFSZ: a limit on file sizes will end the process");
    }
}

/// Listens for one signal.
pub struct StopSignal(Option<Signal>);

impl StopSignal {
    /// Listens from now on, unless the signal was ignored at the start. Must be called within a
    /// Tokio runtime.
    ///
    /// # Errors
    /// The signal cannot be handled.
    pub fn listen(kind: SignalKind) -> io::Result<Self> {
        // Read before the handler is installed, which changes it.
        if has(*IGNORED, kind) { Ok(Self(None)) } else { signal(kind).map(|made| Self(Some(made))) }
    }

    /// Waits for the next one; forever if the signal is ignored.
    pub async fn recv(&mut self) {
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_signals_of_a_status_are_read() {
        // As under `nohup`, of a program in Rust: SIGHUP (1) and SIGPIPE (13).
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t2\n";
        let mask = ignored_in(status);
        assert!(has(mask, SignalKind::hangup()) && has(mask, SignalKind::pipe()));
        assert!(!has(mask, SignalKind::interrupt()) && !has(mask, SignalKind::terminate()));

        for status in ["", "SigIgn:\tx\n", "SigIgn:\n"] {
            assert_eq!(ignored_in(status), 0, "{status:?}");
        }
        assert!(has(1 << 63, SignalKind::from_raw(64)) && !has(u64::MAX, SignalKind::from_raw(65)));
        assert!(
            !has(u64::MAX, SignalKind::from_raw(0)) && !has(u64::MAX, SignalKind::from_raw(-1))
        );
    }
}
