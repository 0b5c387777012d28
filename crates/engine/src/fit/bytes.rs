//! Human-readable sizes.

use std::fmt;

/// A number of bytes, displayed in MiB or GiB with one decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = if self.0 < 1 << 30 { (1_u64 << 20, "MiB") } else { (1 << 30, "GiB") };
        write!(f, "{:.1} {name}", self.0 as f64 / unit as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_fits_them() {
        for (bytes, shown) in [
            (0, "0.0 MiB"),
            (1 << 19, "0.5 MiB"),
            ((1 << 30) - 1, "1024.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (80 << 30, "80.0 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }
}
