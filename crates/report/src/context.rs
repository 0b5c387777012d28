//! What a run is before it starts.

use super::arm::Arm;
use prime_protocol::Strategy;
use prime_roles::{Basis, CardQuote, Names};

/// What is known of a run before it starts: the problem, the agents and the settings.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The slug of the task; `problem` for a custom problem.
    pub task: String,
    /// The instance's name, or `input` for a user's own input.
    pub instance: String,
    /// The agents of the three roles.
    pub agents: Names,
    /// The models that they ask: names of engines and of models on servers.
    pub models: Vec<String>,
    /// Caveats about the agents for anyone who compares results.
    pub notes: Vec<String>,
    /// What the verifier looks at in this problem.
    pub basis: Basis,
    /// Hash of the settings that determine the course of the run: 16 hexadecimal digits.
    pub config_hash: String,
    /// What is quoted of the verifier's card, if it has one.
    pub card: Option<CardQuote>,
    /// How the run searches.
    pub strategy: Strategy,
    /// The seed of all randomness in the run.
    pub seed: u64,
    /// Its side of a comparison, if it takes part in one.
    pub split: Option<Arm>,
}
