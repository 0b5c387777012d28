//! What a result quotes of its verifier's card.

use serde::{Deserialize, Serialize};

use prime_bench::interval::Proportion;

/// A reference to the file with a verifier's error rates, and its figures of false accepts over all
/// of its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CardQuote {
    /// The card's file, as the configuration names it.
    pub file: String,
    /// The SHA-256 of the file, in hex.
    pub sha256: String,
    /// Tasks on which the verifier was measured.
    pub tasks: u32,
    /// Wrong steps that it accepted.
    pub step_false_accepts: Proportion,
    /// Traces with a wrong answer in which it accepted every step.
    pub run_false_accepts: Proportion,
}
