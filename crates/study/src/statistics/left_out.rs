//! Why a statistic is left out.

use serde::Serialize;

/// Why a statistic cannot be computed from the data. Reports print the reason in place of a number.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum LeftOut {
    /// There are fewer values than the statistic needs.
    #[error("needs at least {need} {what}, has {have}")]
    TooFew {
        /// What there is too little of, in the plural.
        what: &'static str,
        /// The least number.
        need: usize,
        /// The present number.
        have: usize,
    },
    /// A standard error of zero would give an infinite statistic.
    #[error("all {what} are equal")]
    NoVariation {
        /// What does not vary, in the plural.
        what: &'static str,
    },
    /// Too many pairs were not measured; see [`super::UNMEASURED_SHARE_MAX`].
    #[error("{dropped} of {of} pairs were not measured, more than {limit_percent} %", limit_percent = 100.0 * super::UNMEASURED_SHARE_MAX)]
    Unmeasured {
        /// Number of pairs that were not measured.
        dropped: usize,
        /// Number of all pairs.
        of: usize,
    },
    /// The samples differ in length.
    #[error("the samples have {left} and {right} values and cannot be paired")]
    NotPaired {
        /// Number of values on the left.
        left: usize,
        /// Number of values on the right.
        right: usize,
    },
    /// A value that must be positive is not.
    #[error("{what} must be positive, and {value} is not")]
    NotPositive {
        /// What must be positive.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// A value is above the limit that it cannot exceed.
    #[error("{what} {value} is above its limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The value.
        value: usize,
        /// The largest possible value.
        limit: usize,
    },
    /// The test needs one run of each instance.
    #[error("instances were run several times, and the test needs one run of each")]
    Repeated,
    /// A value is infinite or not a number.
    #[error("a value is not a finite number")]
    NotFinite,
    /// The best exponent lies at the end of the searched range.
    #[error(
        "the fit does not converge: the exponent runs to {bound}, the end of the searched range"
    )]
    NoConvergence {
        /// The end of the searched range.
        bound: f64,
    },
}

/// A statistic, or why it is left out.
pub type Computed<T> = Result<T, LeftOut>;

/// Requires a count of values.
pub(super) fn at_least(what: &'static str, need: usize, have: usize) -> Computed<()> {
    if have < need { Err(LeftOut::TooFew { what, need, have }) } else { Ok(()) }
}

/// Requires finite values.
pub(super) fn finite<'v>(values: impl IntoIterator<Item = &'v f64>) -> Computed<()> {
    if values.into_iter().all(|value| value.is_finite()) { Ok(()) } else { Err(LeftOut::NotFinite) }
}
