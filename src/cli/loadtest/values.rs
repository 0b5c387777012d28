//! Parsers of the load test's option values.

use std::time::Duration;

use jiff::SignedDuration;

use crate::loads::plan::RATE_MAX;

const TIME_MAX: Duration = Duration::from_hours(24);
/// Longest injected delay. A test ends only when its last turns have finished.
const DELAY_MAX: Duration = Duration::from_secs(10);

/// A time above zero, such as `200us`, `5ms` or `10s`.
pub fn time(text: &str) -> Result<Duration, String> {
    let time = time_or_none(text)?;
    if time.is_zero() {
        Err("give a time above zero, such as 200us, 5ms or 10s".to_owned())
    } else {
        Ok(time)
    }
}

/// The delay of a turn.
pub fn delay(text: &str) -> Result<Duration, String> {
    let delay = time(text)?;
    if delay > DELAY_MAX {
        Err("give at most 10s, since the test waits for its last turns".to_owned())
    } else {
        Ok(delay)
    }
}

/// A time, zero included.
pub fn time_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    let usage = || "give a number with a unit, such as 200us, 5ms, 10s or 2m".to_owned();
    let time = text.parse::<SignedDuration>().map_err(|_| usage())?;
    let time = Duration::try_from(time).map_err(|_| usage())?;
    if time > TIME_MAX { Err("give at most 24h".to_owned()) } else { Ok(time) }
}

/// A share, from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a share from 0 to 1, such as 0.01".to_owned())
}

/// Steps per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= RATE_MAX);
    rate.ok_or_else(|| format!("give a number of steps per second above 0 and at most {RATE_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, micros) in [
            ("200us", 200),
            ("5ms", 5_000),
            ("10s", 10_000_000),
            ("0.5s", 500_000),
            ("2m", 120_000_000),
            ("1m30s", 90_000_000),
            ("24h", 86_400_000_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for text in ["", "10", "-5ms", "5 parsecs", "ms", "1e9s", "∞"] {
            assert!(time(text).unwrap_err().contains("unit"), "{text}: {:?}", time(text));
        }
        for text in ["0", "0s", "0ms"] {
            assert!(time(text).unwrap_err().contains("above zero"), "{text}");
            assert_eq!(time_or_none(text), Ok(Duration::ZERO));
        }
        assert!(time("24h1s").unwrap_err().contains("24h"));
        assert_eq!(delay("10s"), Ok(Duration::from_secs(10)));
        assert!(delay("10001ms").unwrap_err().contains("10s"));
    }

    #[test]
    fn shares_and_rates_have_bounds() {
        assert_eq!(["0", "1", "0.01"].map(share), [Ok(0.0), Ok(1.0), Ok(0.01)]);
        for text in ["-0.1", "1.1", "NaN", "1%", ""] {
            assert!(share(text).unwrap_err().contains("from 0 to 1"), "{text}");
        }
        assert_eq!(["0.5", "1000", "1e7"].map(rate), [Ok(0.5), Ok(1_000.0), Ok(10_000_000.0)]);
        for text in ["0", "-1", "inf", "NaN", "10000001", "fast"] {
            assert!(rate(text).unwrap_err().contains("above 0"), "{text}");
        }
    }
}
