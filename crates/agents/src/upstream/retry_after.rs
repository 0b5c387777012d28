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

    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date that has passed asks for no delay.
    let seconds = date(asked)?.as_second() - date(text(DATE)?)?.as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn date(text: &str) -> Option<Timestamp> {
    // RFC 2822 knows `GMT` too.
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
            ("1.5", Some(date), None),
            ("soon", Some(date), None),
            ("99999999999999999999999", Some(date), None),
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
