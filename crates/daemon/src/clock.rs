//! The wall clock.

use std::ops::Range;

use jiff::Timestamp;

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// The times, in seconds since 1970, between which every part of the program can calculate: from
/// 1970 to the end of the year 8999.
const USABLE: Range<i64> = 0..221_845_392_000;

/// Checks that the system's clock shows a time with which the program can calculate.
///
/// # Errors
/// What it shows, and what to do.
pub fn check_clock() -> Result<(), String> {
    check(rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec)
}

fn check(seconds: i64) -> Result<(), String> {
    if USABLE.contains(&seconds) {
        return Ok(());
    }
    let when = if seconds < USABLE.start { "before 1970" } else { "after the year 8999" };
    Err(format!(
        "the system's clock shows a time {when} ({seconds} s since 1970): set it, and start again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_far_off_are_refused() {
        // `date -u -d 9000-01-01 +%s`
        let year_9000: Timestamp = "9000-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(year_9000.as_second(), USABLE.end);
        for (seconds, expected) in [
            (i64::MIN, Some("before 1970")),
            (-1, Some("before 1970")),
            (0, None),
            (1_800_000_000, None),
            (221_845_391_999, None),
            (221_845_392_000, Some("after the year 8999")),
            (i64::MAX, Some("after the year 8999")),
        ] {
            let refused = check(seconds).err();
            assert_eq!(refused.is_some(), expected.is_some(), "{seconds}");
            assert!(refused.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
