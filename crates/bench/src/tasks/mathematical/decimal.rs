//! Integers of any length, decimal strings in JSON.

use num_bigint::BigInt;
use serde::{Deserialize, Serialize};

/// An integer, written as a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Decimal(pub BigInt);

/// Longer numbers are refused before they are read: reading takes quadratic time.
const DIGITS_MAX: usize = 10_000;

impl TryFrom<String> for Decimal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let value = (text.len() <= DIGITS_MAX).then(|| text.parse::<BigInt>().ok()).flatten();
        // Leading zeros and signs make another text of the same number.
        value.filter(|value| value.to_string() == text).map(Self).ok_or_else(|| {
            let start: String = text.chars().take(20).collect();
            format!("{start:?} is not a decimal number without leading zeros, of at most {DIGITS_MAX} digits")
        })
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        decimal.0.to_string()
    }
}
