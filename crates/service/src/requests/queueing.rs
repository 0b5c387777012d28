//! When a requested run is to begin and to end.

use jiff::Timestamp;

use super::error::{Reason, RequestError};
use super::run_request::RunRequest;
use crate::runs::{Queueing, timestamp};

/// The levels of priority.
const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;

/// A field with a time, in milliseconds since 1970.
fn time(field: &'static str, text: Option<&String>) -> Result<Option<u64>, RequestError> {
    let Some(text) = text else { return Ok(None) };
    let time = text.parse::<Timestamp>().ok();
    let millis = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
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
