//! Why a statistic is left out.

use serde::Serialize;

/// Why a statistic cannot be computed from these data; reports print it in place of a number.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum LeftOut {
    #[error("needs at least {need} {what}, has {have}")]
    TooFew { what: &'static str, need: usize, have: usize },
    /// A standard error of zero would give an infinite statistic.
    #[error("all {what} are equal")]
    NoVariation { what: &'static str },
    #[error("{dropped} of {of} pairs were not measured, more than {limit_percent} %", limit_percent = 100.0 * super::UNMEASURED_SHARE_MAX)]
    Unmeasured { dropped: usize, of: usize },
    #[error("the samples have {left} and {right} values and cannot be paired")]
    NotPaired { left: usize, right: usize },
    #[error("{what} must be positive, and {value} is not")]
    NotPositive { what: &'static str, value: f64 },
    #[error("{what} {value} is above its limit of {limit}")]
    TooLarge { what: &'static str, value: usize, limit: usize },
    #[error("instances were run several times, and the test needs one run of each")]
    Repeated,
    #[error("a value is no finite number")]
    NotFinite,
    #[error(
        "the fit does not converge: the exponent runs to {bound}, the end of the searched range"
    )]
    NoConvergence { bound: f64 },
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
