//! Formats numbers for people, as all reports do, and in units of a load test.

pub use prime_page::number::{NONE, count, figure, optional, plain};

/// `1 trajectory`, `1,000 trajectories`.
pub fn trajectories(value: u32) -> String {
    format!("{} {}", count(value.into()), if value == 1 { "trajectory" } else { "trajectories" })
}

/// A change in per cent, with its sign.
pub fn change(percent: f64) -> String {
    if percent == f64::INFINITY {
        return "from 0".to_owned();
    }
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{percent:.1}")
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
