//! The header `Retry-After`, in seconds or as a date. A date is compared with the server's own
//! `Date`, so no local clock is read.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The requested delay; `None` if the header is missing or cannot be parsed.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;

    if let Some(delay) = seconds(asked) {
        return Some(delay);
    }
    // A date that has passed asks for no delay.
    let seconds = date(asked)?.as_second() - date(text(DATE)?)?.as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Seconds in digits. The standard has no fractions, but some servers send them: they are rounded
/// up, because a shorter delay would be too early. More seconds than 64 bits can hold become the
/// maximum: the caller limits every delay.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !(whole.bytes().chain(fraction.bytes())).all(|c| c.is_ascii_digit()) {
        return None;
    }
    // The text has only digits, so that parsing can fail only if there are too many.
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    let has_more = fraction.bytes().any(|digit| digit != b'0');
    Some(Duration::from_secs(whole.saturating_add(has_more.into())))
}

fn date(text: &str) -> Option<Timestamp> {
    // RFC 2822 includes `GMT`.
    DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_parsed_and_the_rest_is_ignored() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let cases = [
            ("7", None, Some(7)),
            (" 0 ", None, Some(0)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(date), Some(30)),
            ("Wed, 21 Oct 2015 07:20:00 GMT", Some(date), Some(0)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", None, None),
            ("-3", Some(date), None),
            ("-1.5", Some(date), None),
            ("1.5", Some(date), Some(2)),
            ("299.997", None, Some(300)),
            ("2.000", None, Some(2)),
            ("0.001", None, Some(1)),
            (".5", None, None),
            ("1.5.0", None, None),
            ("1e3", None, None),
            ("+7", None, None),
            ("soon", Some(date), None),
            ("18446744073709551615.5", None, Some(u64::MAX)),
            ("99999999999999999999999", Some(date), Some(u64::MAX)),
        ];
        for (asked, now, seconds) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, asked.parse().unwrap());
            now.map(|now| headers.insert(DATE, now.parse().unwrap()));
            assert_eq!(
                retry_after(&headers),
                seconds.map(Duration::from_secs),
                "{asked:?} at {now:?}"
            );
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
