//! The times of a crontab line in a time zone. Times are milliseconds since 1970, UTC; the clock is
//! the caller's.

use cronexpr::{Crontab, parse_crontab};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Milliseconds of an hour.
const HOUR_MS: i64 = 3_600_000;
/// How far the parser looks ahead, and how often that is repeated: the days of the week repeat
/// after 28 years.
const LOOK_MS: i64 = 4 * 365 * 24 * HOUR_MS;
const LOOKS_MAX: i64 = 8;
/// From when on a line is asked whether its times come: 2024-01-01.
const ASKED_FROM_MS: i64 = 1_704_067_200_000;

/// The fields of a line, in their order.
const FIELDS: [&str; 5] = ["minute", "hour", "day of the month", "month", "day of the week"];
/// Names that a field may have instead of numbers.
const NAMES: &str = "jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat";

/// When something is due.
#[derive(Clone, Debug)]
pub struct Cron {
    line: Crontab,
    zone: TimeZone,
    /// True if the line names hours. Such a time is due once on a day on which the clock is set
    /// back and its hour comes twice.
    names_hours: bool,
}

/// The part of a field that the standard of crontab does not have, if there is one.
fn foreign_part(field: &str) -> Option<&str> {
    field.split([',', '-', '/']).find(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = part.len() == 3 && NAMES.contains(&part.to_ascii_lowercase());
        !(*part == "*" || is_number || is_name)
    })
}

impl Cron {
    /// Reads a line of five fields.
    ///
    /// # Errors
    /// The option that is wrong, `cron` or `timezone`, and why, as a clause.
    pub fn new(line: &str, timezone: &str) -> Result<Self, (&'static str, String)> {
        let example = "set it to five fields, such as \"0 6 * * 1-5\"";
        let wrong = |reason: String| ("cron", format!("is {line:?}, {reason}"));
        if line.trim().is_empty() {
            return Err(("cron", format!("is missing; {example}")));
        }

        let fields: Vec<_> = line.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            let (count, plural) = (fields.len(), if fields.len() == 1 { "" } else { "s" });
            let reason = format!("which has {count} field{plural}, but needs 5: {example}");
            return Err(wrong(reason));
        }
        for (field, name) in fields.iter().zip(FIELDS) {
            if let Some(part) = foreign_part(field) {
                let reason = format!(
                    "whose {name} has `{part}`: a field has numbers or three letters of a name, \
                     `*`, `,`, `-` and `/`"
                );
                return Err(wrong(reason));
            }
        }

        let zone = TimeZone::get(timezone).map_err(|_| {
            let reason = format!(
                "is {timezone:?}, which the IANA database does not have; set it to a name such as \
                 \"Europe/Berlin\""
            );
            ("timezone", reason)
        })?;

        let parsed = parse_crontab(&format!("{} {timezone}", fields.join(" ")));
        let parsed = parsed.map_err(|error| {
            // Its last line says what is wrong, below a copy of the input and a mark.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            wrong(format!(
                "which is not a line of crontab: {}",
                last.trim_start_matches([' ', '^'])
            ))
        })?;

        let cron = Self { line: parsed, zone, names_hours: !fields[1].starts_with('*') };
        if cron.next_after(ASKED_FROM_MS).is_none() {
            let reason = "which never comes: no month that it names has such a day; name another \
                          day or month";
            return Err(wrong(reason.to_owned()));
        }
        Ok(cron)
    }

    /// The first time after this one; `None` if there is none for decades.
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        let mut from_ms = after_ms;
        loop {
            let next_ms = self.look_after(from_ms)?;
            if !self.names_hours || !self.is_repeated(next_ms) {
                return Some(next_ms);
            }
            from_ms = next_ms;
        }
    }

    fn look_after(&self, after_ms: i64) -> Option<i64> {
        (0..LOOKS_MAX).find_map(|look| {
            let from = Timestamp::from_millisecond(after_ms.checked_add(look * LOOK_MS)?).ok()?;
            let next = self.line.find_next(cronexpr::MakeTimestamp(from)).ok()?;
            Some(next.timestamp().as_millisecond())
        })
    }

    /// True if the clock showed the same before, because it was set back.
    fn is_repeated(&self, at_ms: i64) -> bool {
        let Ok(at) = Timestamp::from_millisecond(at_ms) else { return false };
        let shown = self.zone.to_datetime(at);
        let earlier = self.zone.to_ambiguous_zoned(shown).earlier();
        earlier.is_ok_and(|earlier| earlier.timestamp() < at)
    }

    /// The last time in the span after `after_ms` up to `until_ms`, if there is one.
    pub fn last_within(&self, after_ms: i64, until_ms: i64) -> Option<i64> {
        let mut span_ms = HOUR_MS;
        // A long span is searched from its end, because it may hold thousands of times.
        loop {
            let from_ms = until_ms.saturating_sub(span_ms).max(after_ms);
            let mut times =
                std::iter::successors(self.next_after(from_ms), |time| self.next_after(*time));
            let first = times.next().filter(|time| *time <= until_ms);
            if let Some(first) = first {
                return times.take_while(|time| *time <= until_ms).last().or(Some(first));
            }
            if from_ms == after_ms {
                return None;
            }
            span_ms = span_ms.saturating_mul(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn times(line: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let cron = Cron::new(line, zone).unwrap();
        let first = cron.next_after(ms(after));
        std::iter::successors(first, |time| cron.next_after(*time))
            .take(count)
            .map(|time| Timestamp::from_millisecond(time).unwrap().to_string())
            .collect()
    }

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(
            times("0 6 * * 1-5", "UTC", "2026-01-02T06:00:00Z", 2),
            ["2026-01-05T06:00:00Z", "2026-01-06T06:00:00Z"]
        );
        // Summer begins on 2026-03-29.
        assert_eq!(
            times("0 6 * * *", "Europe/Berlin", "2026-03-28T05:00:00Z", 2),
            ["2026-03-29T04:00:00Z", "2026-03-30T04:00:00Z"]
        );
        assert_eq!(
            times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]
        );
    }

    #[test]
    fn an_hour_that_comes_twice_counts_once_and_one_that_is_skipped_not_at_all() {
        // On 2026-10-25 the clock shows 02:30 at 00:30 and at 01:30 UTC.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        // A line without hours has no such time.
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
        );
        // On 2026-03-29 the clock jumps from 02:00 to 03:00.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", 1),
            ["2026-03-30T00:30:00Z"]
        );
    }

    #[test]
    fn the_last_time_of_a_span_is_found_however_long_it_is() {
        let minutely = Cron::new("* * * * *", "UTC").unwrap();
        let yearly = Cron::new("0 0 1 1 *", "UTC").unwrap();
        let (then, now) = (ms("2020-06-01T00:00:30Z"), ms("2026-06-01T12:00:30Z"));

        assert_eq!(minutely.last_within(then, now), Some(ms("2026-06-01T12:00:00Z")));
        assert_eq!(yearly.last_within(then, now), Some(ms("2026-01-01T00:00:00Z")));
        // The beginning of the span does not count, its end does.
        let at = ms("2026-01-01T00:00:00Z");
        assert_eq!(yearly.last_within(at, at + 1), None);
        assert_eq!(yearly.last_within(at - 1, at), Some(at));
        // Neither does a span that ends before it begins.
        assert_eq!(yearly.last_within(now, then), None);
    }
}
