//! When a requested run is to begin and to end.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

use super::error::{Reason, RequestError};
use super::run_request::RunRequest;
use crate::runs::{Queueing, timestamp};

/// The levels of priority.
const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;

/// A time of a request, in milliseconds since 1970; negative before.
///
/// The last hours of the year 9999 count as the last moment that can be calculated with.
///
/// # Errors
/// Why the text is no time with an offset.
pub fn parse_time(text: &str) -> Result<i64, String> {
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(time.as_millisecond().min(last_ms())),
        Err(_) if is_at_the_end(text) => Ok(last_ms()),
        Err(error) => Err(error.to_string()),
    }
}

/// The last whole second of timestamps, in milliseconds since 1970.
fn last_ms() -> i64 {
    Timestamp::MAX.as_second() * 1_000
}

/// True for a valid time with an offset that is too late for a timestamp.
fn is_at_the_end(text: &str) -> bool {
    let Ok(pieces) = Pieces::parse(text) else { return false };
    // In UTC, the last day but one is the last whole day of timestamps.
    let is_late = pieces.date() >= jiff::civil::date(9999, 12, 30);
    is_late && pieces.time().is_some() && pieces.offset().is_some()
}

/// A field with a time, in milliseconds since 1970.
fn time(field: &'static str, text: Option<&String>) -> Result<Option<u64>, RequestError> {
    let Some(text) = text else { return Ok(None) };
    let millis = parse_time(text).ok().and_then(|millis| u64::try_from(millis).ok());
    let not_a_time = || RequestError::field(field, Reason::NotATime { found: text.clone() });
    millis.map(Some).ok_or_else(not_a_time)
}

/// When the run of a request is to begin and to end. Which times are past, and which priority its
/// key may have, is decided at acceptance.
///
/// # Errors
/// The first invalid field.
pub(super) fn queueing_of(request: &RunRequest) -> Result<Queueing, RequestError> {
    let priority = request.priority.unwrap_or_default();
    if !PRIORITIES.contains(&priority) {
        let (least, most) = PRIORITIES.into_inner();
        let expected = format!("an integer from {least} to {most}");
        let reason = Reason::OutOfRange { found: priority.to_string(), expected };
        return Err(RequestError::field("priority", reason));
    }

    let not_before_ms = time("not_before", request.not_before.as_ref())?;
    let deadline_ms = time("deadline", request.deadline.as_ref())?;
    if let (Some(begin), Some(end)) = (not_before_ms, deadline_ms)
        && begin >= end
    {
        let (not_before, deadline) = (timestamp(begin), timestamp(end));
        let reason = Reason::AfterDeadline { not_before, deadline };
        return Err(RequestError::field("not_before", reason));
    }
    Ok(Queueing { priority, not_before_ms, deadline_ms, rank_ms: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(not_before: &str, deadline: &str) -> Result<Queueing, String> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (not_before, deadline) = (text(not_before), text(deadline));
        let request = RunRequest { not_before, deadline, ..RunRequest::default() };
        queueing_of(&request).map_err(|error| error.to_string())
    }

    #[test]
    fn times_have_any_offset() {
        let found = read("1970-01-01T01:00:01+01:00", "1970-01-01T00:00:01.001Z").unwrap();
        assert_eq!((found.not_before_ms, found.deadline_ms), (Some(1_000), Some(1_001)));
        assert_eq!(read("", "").unwrap(), Queueing::default());
    }

    #[test]
    fn the_end_of_the_last_year_is_a_time() {
        // 9999-12-30T22:00:00Z.
        let last = 253_402_207_200_000;
        assert_eq!(timestamp(last), "9999-12-30T22:00:00.000Z");
        for late in
            ["9999-12-31T23:59:59Z", "9999-12-31t23:59:59.999z", "9999-12-31T20:00:00-12:00"]
        {
            let found = read("2026-01-01T00:00:00Z", late).unwrap();
            assert_eq!(found.deadline_ms, Some(last), "{late}");
        }
        for wrong in
            ["9999-12-31T23:59:59", "9999-12-31", "9999-12-32T00:00:00Z", "10000-01-01T00:00:00Z"]
        {
            assert!(read("", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_kept_names_its_field() {
        for (not_before, deadline, part) in [
            ("tomorrow", "", "field `not_before`: is \"tomorrow\", but must be a time"),
            ("", "2026-01-01T00:00:00", "field `deadline`"),
            ("", "2026-02-31T00:00:00Z", "field `deadline`"),
            ("1969-12-31T23:59:59Z", "", "field `not_before`"),
            (
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:00:00Z",
                "`deadline` is 2026-01-01T00:00:00.000Z: the run could never begin",
            ),
            ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", "field `not_before`"),
        ] {
            let message = read(not_before, deadline).unwrap_err();
            assert!(message.contains(part), "{not_before} {deadline}: {message}");
        }

        let with = |priority| {
            let request = RunRequest { priority: Some(priority), ..RunRequest::default() };
            queueing_of(&request).map(|found| found.priority).map_err(|error| error.to_string())
        };
        assert_eq!((with(-100), with(100)), (Ok(-100), Ok(100)));
        for priority in [-101, 101, i32::MIN, i32::MAX] {
            assert!(with(priority).unwrap_err().contains("from -100 to 100"), "{priority}");
        }
    }
}
