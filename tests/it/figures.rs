//! Sizes and seeds from the environment, and figures of other processes: times, memory, load.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::time::Duration;

use rustix::process::Pid;

/// True if `make chaos` runs the tests. Only then do times count: on a shared machine they say
/// little.
pub fn is_chaos() -> bool {
    std::env::var("PRIME_CHAOS").is_ok()
}

/// A bound on a time that the daemon promises. Always printed, and asserted by `make chaos`.
pub fn promise(what: &str, took: Duration, bound: Duration) {
    eprintln!("{what}: {took:.1?}, promised within {bound:.1?}; {}", load());
    assert!(!is_chaos() || took <= bound, "{what}: {took:?} instead of {bound:?}");
}

/// The seed of everything random: `PRIME_CHAOS_SEED`, or a fixed one.
pub fn chaos_seed() -> u64 {
    let seed = from_env("PRIME_CHAOS_SEED", 42);
    eprintln!("PRIME_CHAOS_SEED={seed}");
    seed
}

/// A size that can be chosen by an environment variable.
pub fn from_env(name: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number, and is {text:?}"))
}

/// Unoptimised builds are an order of magnitude slower: a size or limit for each case.
pub const fn optimised<T: Copy>(yes: T, no: T) -> T {
    if cfg!(debug_assertions) { no } else { yes }
}

/// A percentile by the nearest rank.
pub fn percentile(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    *sorted.get(rank.max(1) - 1).expect("at least one")
}

/// A field of a process's status in bytes, such as `VmRSS` (resident memory) or `VmHWM` (its peak).
pub fn memory(pid: Pid, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .expect("the field");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// `USER_HZ` of Linux, the unit of times in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processor time that a process has taken, in user and system mode.
pub fn cpu_seconds(pid: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    // After the name in brackets: the state is field 3, the times are 14 and 15.
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

pub const MIB: u64 = 1 << 20;

/// The load average over a minute.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("load {} on {cores} cores", text.split(' ').next().unwrap_or_default())
}
