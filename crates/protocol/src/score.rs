//! The violation score V of a step.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// V(s) in thousandths, so that comparisons with thresholds are exact; 0 is clean. A rule
/// verifier's V is the weighted sum of eq. 2; an LLM verifier's score, between 0 and 1, is used as
/// it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(u32);

impl Score {
    /// V = 0: a clean step.
    pub const ZERO: Self = Self(0);

    /// A score in tenths, which is how severities are defined.
    pub const fn from_tenths(tenths: u32) -> Self {
        Self(tenths.saturating_mul(100))
    }

    /// The nearest score; `None` if `value` is negative or not finite.
    pub fn from_value(value: f64) -> Option<Self> {
        let thousandths = (value * 1000.0).round();

        (thousandths >= 0.0 && thousandths <= f64::from(u32::MAX)).then_some(
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the range was just checked"
            )]
            Self(thousandths as u32),
        )
    }

    /// V in thousandths.
    pub(crate) const fn thousandths(self) -> u32 {
        self.0
    }

    /// V as a number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The sum, which saturates.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::from_value(value)
            .ok_or_else(|| serde::de::Error::custom("a score is a number of 0 or more"))
    }
}
