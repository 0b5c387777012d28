//! The wall clock.

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
