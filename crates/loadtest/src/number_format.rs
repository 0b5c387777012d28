//! Formats numbers for people.

/// Shown in place of a missing number.
pub const NONE: &str = "–";

/// Inserts a comma before each group of three digits.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count: `1,234,567`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// `1 trajectory`, `1,000 trajectories`.
pub fn trajectories(value: u32) -> String {
    format!("{} {}", count(value.into()), if value == 1 { "trajectory" } else { "trajectories" })
}

/// A measured value: three significant digits below a thousand, with at most three decimals; whole
/// numbers above.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    // The limits are where rounding would add a digit.
    let digits = match size {
        _ if !value.is_finite() => return NONE.to_owned(),
        0.0 => return "0".to_owned(),
        _ if size < 0.000_5 => return if value < 0.0 { "-<0.001" } else { "<0.001" }.to_owned(),
        _ if size < 0.999_5 => 3,
        _ if size < 9.995 => 2,
        _ if size < 99.95 => 1,
        _ => 0,
    };

    let text = format!("{size:.digits$}");
    let text = if digits == 0 { grouped(&text) } else { text };
    if value < 0.0 { format!("-{text}") } else { text }
}

/// [`figure`], or [`NONE`].
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), figure)
}

/// A change in per cent, with its sign.
pub fn change(percent: f64) -> String {
    if percent == f64::INFINITY {
        return "from 0".to_owned();
    }
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{percent:.1}")
}

/// A number without trailing zeros: `0.5`, `10`, `1,500`. For settings and axis labels.
pub fn plain(value: f64) -> String {
    let text = format!("{:.6}", value.abs());
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };

    if part.is_empty() {
        format!("{sign}{}", grouped(whole))
    } else {
        format!("{sign}{}.{part}", grouped(whole))
    }
}

/// A memory size in binary units.
pub fn memory(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(shift, name)| format!("{} {name}", figure(bytes as f64 / f64::from(1_u32 << shift))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let rows = [
            (0.0, "0"),
            (0.000_4, "<0.001"),
            (0.000_5, "0.001"),
            (0.412_4, "0.412"),
            (0.999_6, "1.00"),
            (1.0, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.94, "99.9"),
            (99.96, "100"),
            (999.6, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-12.34, "-12.3"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, expected) in rows {
            assert_eq!(figure(value), expected, "{value}");
        }
        assert_eq!((optional(None).as_str(), optional(Some(2.5)).as_str()), ("–", "2.50"));
    }

    #[test]
    fn counts_are_grouped_and_trailing_zeros_dropped() {
        for (value, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (10_000_000, "10,000,000")]
        {
            assert_eq!(count(value), expected);
        }
        for (value, expected) in
            [(0.5, "0.5"), (10.0, "10"), (1_500.0, "1,500"), (0.000_001, "0.000001"), (-2.0, "-2")]
        {
            assert_eq!(plain(value), expected);
        }
    }

    #[test]
    fn memory_is_in_binary_units() {
        let rows = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.50 KiB"),
            (8 << 30, "8.00 GiB"),
            (2_000 << 30, "2,000 GiB"),
        ];
        for (bytes, expected) in rows {
            assert_eq!(memory(bytes), expected);
        }
    }
}
