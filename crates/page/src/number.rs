//! Numbers as people read them: a comma before each group of three digits.

/// Shown in place of a missing number.
pub const NONE: &str = "–";

/// Inserts a comma before each group of three digits of a whole number without a sign.
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

/// A number with this many digits after the point: `1,234.50`. Without a minus before zero.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "-" } else { "" };
    match text.split_once('.') {
        Some((whole, part)) => format!("{sign}{}.{part}", grouped(whole)),
        None => format!("{sign}{}", grouped(&text)),
    }
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
    fixed(value, digits)
}

/// [`figure`], or [`NONE`].
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), figure)
}

/// A number without trailing zeros: `0.5`, `10`, `1,500`. For settings and axis labels.
pub fn plain(value: f64) -> String {
    trimmed(value, 6)
}

/// A number with at most this many decimals and without trailing zeros.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    match text.split_once('.') {
        Some((whole, part)) => {
            let part = part.trim_end_matches('0');
            let whole = if part.is_empty() && whole == "-0" { "0" } else { whole };
            if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
        }
        None => text,
    }
}

/// Formats a number below a thousand as `format` does, a larger one with k, M or G.
pub fn in_units(value: f64, format: fn(f64) -> String) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units.into_iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or_else(|| format(value), |(size, name)| format!("{}{name}", format(value / size)))
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
        for (value, expected) in [
            (0.5, "0.5"),
            (10.0, "10"),
            (1_500.0, "1,500"),
            (0.000_001, "0.000001"),
            (-2.0, "-2"),
            (-1e-9, "0"),
        ] {
            assert_eq!(plain(value), expected);
        }
        for (value, expected) in [(-0.04, "0.0"), (-1_234.56, "-1,234.6"), (999.96, "1,000.0")] {
            assert_eq!(fixed(value, 1), expected);
        }
        assert_eq!(
            (in_units(1_500.0, plain).as_str(), in_units(20.0, plain).as_str()),
            ("1.5 k", "20")
        );
    }
}
