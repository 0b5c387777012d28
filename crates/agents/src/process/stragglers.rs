//! Finds the processes that a program has started and that have left its process group, by a
//! variable in their environment, which children inherit. A program that clears it in a new session
//! escapes; this is not a sandbox.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that marks a process and all that it starts.
pub(super) const VARIABLE: &str = "PRIME_AGENT_PROCESS";
/// Maximum number of searches: a process that is found may just have started another one.
const ROUNDS_MAX: u32 = 20;

/// A mark that no other process has.
pub(super) fn new_mark() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Kills every process with this mark. May block for milliseconds.
pub(super) fn kill(mark: &str) {
    let entry = format!("{VARIABLE}={mark}");
    for _ in 0..ROUNDS_MAX {
        if !kill_once(entry.as_bytes()) {
            return;
        }
    }
}

/// Kills every process with this variable that it finds; returns whether there were any.
fn kill_once(entry: &[u8]) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };

    let mut found = false;
    for process in processes.flatten() {
        let pid =
            process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // The descriptor comes first: by the time of the signal, the number might belong to another
        // process.
        let Some(descriptor) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            continue;
        };

        // Other users' processes cannot be read, and a zombie has no environment.
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == entry) {
            found |= pidfd_send_signal(&descriptor, Signal::KILL).is_ok();
        }
    }
    found
}
