//! Latency histograms, and their text form in a report.

use std::io::Cursor;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use super::report::Latency;

/// Longest latency recorded, in nanoseconds: an hour. Longer ones saturate.
pub const NANOS_MAX: u64 = 3_600_000_000_000;
/// Longest encoded histogram accepted, in bytes. With the bounds of [`empty`] it has a few
/// thousand.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Why the text of a histogram cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a histogram of the report cannot be decoded: {0}: was the file edited by hand?")]
pub struct HistogramError(String);

/// A histogram of nanoseconds from 1 to [`NANOS_MAX`], with three significant digits. Use
/// `saturating_record`.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, NANOS_MAX, 3).expect("invariant: the bounds are valid")
}

/// HdrHistogram's compressed V2 format in base64, which its tools read in every language.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("invariant: memory can be written");
    BASE64_STANDARD.encode(bytes)
}

/// The inverse of [`encode`].
pub fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError(format!(
            "it has {} bytes, more than the limit of {TEXT_BYTES_MAX}",
            text.len()
        )));
    }

    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| HistogramError(format!("not base64: {error}")))?;
    let histogram = Deserializer::new().deserialize(&mut Cursor::new(bytes));
    histogram.map_err(|error| HistogramError(format!("not a histogram: {error}")))
}

/// Percentiles of a histogram of nanoseconds; all zero if it is empty.
pub fn latency(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let at = |quantile| micros(histogram.value_at_quantile(quantile));
    Latency {
        mean_us: histogram.mean() / 1e3,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: micros(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        let mut histogram = empty();
        for (nanos, count) in
            [(1, 3), (999, 1), (2_500, 1_000_000), (70_000_000_000, 2), (NANOS_MAX, 1)]
        {
            histogram.saturating_record_n(nanos, count);
        }
        for histogram in [histogram, empty()] {
            assert_eq!(decode(&encode(&histogram)).unwrap(), histogram);
        }
    }

    #[test]
    fn longer_latencies_saturate() {
        let mut histogram = empty();
        histogram.saturating_record(u64::MAX);
        assert!(
            (3_596_400_000.0..=3_603_600_000.0).contains(&latency(&histogram).max_us),
            "{:?}",
            latency(&histogram)
        );
    }

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut histogram = empty();
        // Values that three digits represent exactly.
        for (nanos, count) in [(1_000, 50), (2_000, 40), (4_000, 9), (500, 1)] {
            histogram.saturating_record_n(nanos, count);
        }

        let latency = latency(&histogram);
        // In order: 1 × 0.5 µs, 50 × 1 µs, 40 × 2 µs, 9 × 4 µs.
        let close = |value: f64, expected: f64| (value - expected).abs() <= expected * 2e-3;
        let rows = [
            (latency.mean_us, 1.665),
            (latency.p50_us, 1.0),
            (latency.p90_us, 2.0),
            (latency.p99_us, 4.0),
            (latency.p999_us, 4.0),
            (latency.max_us, 4.0),
        ];

        assert!(rows.iter().all(|(value, expected)| close(*value, *expected)), "{latency:?}");
        assert_eq!(super::latency(&empty()), Latency::default());
    }

    #[test]
    fn invalid_texts_are_refused() {
        let long = "A".repeat(TEXT_BYTES_MAX + 4);
        for (text, part) in [
            ("", "not a histogram"),
            ("%%%", "not base64"),
            ("AAAAAAAAAAA=", "not a histogram"),
            (&long, "bytes"),
        ] {
            let error = decode(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("by hand"), "{error}");
        }

        let whole = encode(&empty());
        for end in 0..whole.len() {
            // Truncated anywhere: an error or a histogram, never a panic.
            drop(decode(&whole[..end]));
        }
    }
}
