//! Money: what a run spends, and what a model's tokens cost. Integers, so that a sum is exact and
//! does not depend on its order.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::verdict::Usage;

/// Parts of a cost in one unit of the currency, and of a price in a cost's.
const NANOS: f64 = 1e9;
const PICOS_PER_NANO: u128 = 1_000;

/// An amount of money in billionths of the currency that the prices are in. In JSON it is a decimal
/// number of that currency, such as `0.00125`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount in billionths.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The least amount that is not below `value`, in whole units of the currency; `None` if
    /// `value` is negative, not finite or above 10 billion.
    pub fn from_units(value: f64) -> Option<Self> {
        let nearest = Self::nearest(value)?;
        // What is too little to be counted is not nothing.
        Some(if nearest == Self::ZERO && value > 0.0 { Self(1) } else { nearest })
    }

    fn nearest(value: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked before"
        )]
        (0.0..=1e10).contains(&value).then(|| Self((value * NANOS).round() as u64))
    }

    /// Returns whether it is nothing.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The amount in billionths.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The amount in whole units of the currency.
    #[expect(clippy::cast_precision_loss, reason = "exact up to eight million units")]
    pub fn units(self) -> f64 {
        self.0 as f64 / NANOS
    }

    /// The sum, which saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The rest after this was spent, at least nothing.
    #[must_use]
    pub const fn less(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }
}

impl fmt::Display for Cost {
    /// All digits that are not 0, and at least two after the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let digits = format!("{nanos:09}");
        let shown = digits.trim_end_matches('0');
        write!(f, "{units}.{shown:0<2}")
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.units())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        // A sum that was saturated is above what a client may ask for.
        if value > 1e10 {
            return Ok(Self(u64::MAX));
        }
        Self::nearest(value).ok_or_else(|| de::Error::custom("a cost is 0 or more"))
    }
}

/// The price of a model's tokens, in trillionths of the currency's unit for each: a price for a
/// million tokens is exact to its sixth decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    prompt: u64,
    cached: u64,
    completion: u64,
}

impl Price {
    /// Prices of a million tokens of each kind: of prompts, of those of them that the model had
    /// computed before, and of completions. `None` if one is negative, not finite or above a
    /// billion.
    pub fn per_million(prompt: f64, cached: f64, completion: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked before"
        )]
        let picos = |price: f64| (0.0..=1e9).contains(&price).then(|| (price * 1e6).round() as u64);
        Some(Self {
            prompt: picos(prompt)?,
            cached: picos(cached)?,
            completion: picos(completion)?,
        })
    }

    /// The cost of these tokens, rounded to a billionth.
    pub fn of(self, usage: Usage) -> Cost {
        let times = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = usage.cached.min(usage.prompt);
        let picos = times(usage.prompt - cached, self.prompt)
            .saturating_add(times(cached, self.cached))
            .saturating_add(times(usage.completion, self.completion));

        let nanos = picos.saturating_add(PICOS_PER_NANO / 2) / PICOS_PER_NANO;
        Cost(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(prompt: u64, cached: u64, completion: u64) -> Usage {
        Usage { cached, ..Usage::new(prompt, completion) }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price::per_million(2.5, 0.25, 10.0).unwrap();
        for (usage, nanos) in [
            (used(1_000_000, 0, 0), 2_500_000_000),
            (used(1_000_000, 1_000_000, 0), 250_000_000),
            (used(0, 0, 1_000_000), 10_000_000_000),
            (used(100, 40, 7), 60 * 2_500 + 40 * 250 + 7 * 10_000),
            // Thinking is a part of the completion, and a server may claim a larger part than all.
            (Usage { reasoning: 5, ..used(0, 0, 5) }, 50_000),
            (used(1, 9, 0), 250),
            (Usage::default(), 0),
        ] {
            assert_eq!(price.of(usage), Cost::from_nanos(nanos), "{usage:?}");
        }

        let cheap = Price::per_million(0.0375, 0.0, 0.0).unwrap();
        assert_eq!(cheap.of(used(2, 0, 0)), Cost::from_nanos(75));
        assert_eq!(cheap.of(used(1, 0, 0)), Cost::from_nanos(38));

        let dear = Price::per_million(1e9, 1e9, 1e9).unwrap();
        assert_eq!(dear.of(used(u64::MAX, 0, u64::MAX)), Cost::from_nanos(u64::MAX));
        assert_eq!(Price::per_million(0.0, 0.0, 0.0).unwrap().of(used(9, 1, 9)), Cost::ZERO);
    }

    #[test]
    fn prices_are_finite_and_not_negative() {
        for wrong in [-0.1, f64::NAN, f64::INFINITY, 1.1e9] {
            assert_eq!(Price::per_million(wrong, 0.0, 0.0), None);
            assert_eq!(Price::per_million(0.0, wrong, 0.0), None);
            assert_eq!(Price::per_million(0.0, 0.0, wrong), None);
        }
        for wrong in [-1e-9, f64::NAN, f64::INFINITY, 1.1e10] {
            assert_eq!(Cost::from_units(wrong), None);
        }
    }

    #[test]
    fn sums_do_not_drift() {
        let price = Price::per_million(0.1, 0.0, 0.0).unwrap();
        let mut sum = Cost::ZERO;
        for _ in 0..100_000 {
            sum = sum.plus(price.of(used(1, 0, 0)));
        }
        assert_eq!((sum.nanos(), sum.to_string().as_str()), (10_000_000, "0.01"));
        assert_eq!(sum.plus(Cost::from_nanos(u64::MAX)).nanos(), u64::MAX);
        assert_eq!(Cost::from_nanos(5).less(sum), Cost::ZERO);
    }

    #[test]
    fn a_cost_is_a_decimal_number() {
        for (nanos, json, text) in [
            (0, "0.0", "0.00"),
            (1, "1e-9", "0.000000001"),
            (1_250_000, "0.00125", "0.00125"),
            (300_000_000, "0.3", "0.30"),
            (12_000_000_000, "12.0", "12.00"),
            (7_999_999_999_999_999, "7999999.999999999", "7999999.999999999"),
        ] {
            let cost = Cost::from_nanos(nanos);
            assert_eq!(serde_json::to_string(&cost).unwrap(), json);
            assert_eq!(serde_json::from_str::<Cost>(json).unwrap(), cost);
            assert_eq!(cost.to_string(), text);
        }
        assert_eq!(serde_json::from_str::<Cost>("3").unwrap(), Cost::from_nanos(3_000_000_000));
        assert!(serde_json::from_str::<Cost>("-1").is_err());

        let most = Cost::from_nanos(u64::MAX);
        let json = serde_json::to_string(&most).unwrap();
        assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), most);
        // A limit that is too little to be counted is not "no limit".
        assert_eq!(Cost::from_units(1e-12), Some(Cost::from_nanos(1)));
        assert_eq!(Cost::from_units(0.0), Some(Cost::ZERO));
    }
}
