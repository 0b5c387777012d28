//! How many cores are idle: threads of llama.cpp that share a core wait for each other at every
//! layer.

use std::fs::read_to_string;
use std::time::Duration;

/// How long the cores are watched. The kernel counts in hundredths of a second, per core.
const WATCHED: Duration = Duration::from_millis(60);

/// The field of a process's nice value, counted after its name.
const NICE_FIELD: usize = 16;

/// What the kernel counted for all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    cores: u64,
    all: u64,
    /// Idle, or waiting for a disk.
    idle: u64,
    /// Spent on processes that yield to others.
    nice: u64,
}

/// The times in `/proc/stat`.
fn times(stat: &str) -> Option<Times> {
    let sum = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = sum.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let &[_, nice, _, idle, waiting, ..] = &fields[..] else { return None };
    let numbered = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(Times {
        cores: stat.lines().filter(numbered).count() as u64,
        // What guests took is a part of the first two.
        all: fields.iter().take(8).sum(),
        idle: idle + waiting,
        nice,
    })
}

/// How many cores were idle between two moments, rounded. A core that works for processes that
/// yield counts as idle for one that does not.
fn idle_between(before: Times, after: Times, yields: bool) -> Option<u64> {
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let idle = after.idle.saturating_sub(before.idle);
    let nice = if yields { 0 } else { after.nice.saturating_sub(before.nice) };
    Some(((idle + nice) * after.cores + all / 2) / all)
}

/// True if this process yields to others.
fn yields() -> bool {
    let stat = read_to_string("/proc/self/stat").unwrap_or_default();
    let nice = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(NICE_FIELD));
    nice.and_then(|nice| nice.parse::<i64>().ok()).is_some_and(|nice| nice > 0)
}

/// The cores that are idle now, at least 1 and at most `cores`; 1 where the system does not say.
/// Takes 60 ms.
#[expect(clippy::disallowed_methods, reason = "once, on a thread that does nothing else yet")]
pub(super) fn idle_cores(cores: usize) -> usize {
    let now = || read_to_string("/proc/stat").ok().as_deref().and_then(times);
    let before = now();
    std::thread::sleep(WATCHED);
    let idle = before.zip(now()).and_then(|(before, now)| idle_between(before, now, yields()));
    idle.and_then(|idle| usize::try_from(idle).ok()).unwrap_or(1).clamp(1, cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  100 20 30 400 50 6 7 8 90 0
cpu0 50 10 15 200 25 3 3 4 45 0
cpu1 50 10 15 200 25 3 4 4 45 0
intr 12 0
ctxt 99
";

    #[test]
    fn the_times_of_all_cores_are_read() {
        assert_eq!(times(STAT), Some(Times { cores: 2, all: 621, idle: 450, nice: 20 }));
        assert_eq!(times("cpu 1 2\n"), None);
        assert_eq!(times(""), None);
    }

    #[test]
    fn cores_that_work_for_yielding_processes_are_idle_for_others() {
        let before = Times { cores: 4, all: 1000, idle: 500, nice: 100 };
        for (idle, nice, yields, expected) in [
            (40, 0, false, Some(4)),
            (0, 0, false, Some(0)),
            (10, 20, false, Some(3)),
            (10, 20, true, Some(1)),
            // 1.4 and 1.6 cores.
            (14, 0, false, Some(1)),
            (16, 0, false, Some(2)),
        ] {
            let after = Times { cores: 4, all: 1040, idle: 500 + idle, nice: 100 + nice };
            assert_eq!(idle_between(before, after, yields), expected, "{idle} {nice} {yields}");
        }
        assert_eq!(idle_between(before, before, false), None, "no time has passed");
    }
}
