//! The interface through which training draws completions, from its own decoder or from the engine.

use rand_chacha::ChaCha8Rng;

use super::TrainError;

/// A prompt from which completions are drawn.
pub struct Request<'a> {
    pub prompt: &'a [u16],
    /// One random stream for each completion.
    pub streams: Vec<ChaCha8Rng>,
    /// The values that its completions can look up.
    pub values: Option<&'a dyn Values>,
}

/// The values at the addresses of a state.
pub trait Values {
    /// The answer to the text of a completion so far.
    fn answer(&self, written: &[u16]) -> Answer;
}

/// What a lookup appends to a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The completion does not end with a query.
    NotAsked,
    /// These tokens are appended.
    Value(Vec<u16>),
    /// There is no such address, or there were too many queries: the completion stops here.
    Nothing,
}

/// How completions are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// 0 takes the most likely token.
    pub temperature: f64,
    /// Maximum number of tokens that are drawn for a completion, eos included.
    pub tokens_max: usize,
}

/// A completion that was drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// Without eos, with the values that it looked up.
    pub tokens: Vec<u16>,
    /// ln π of each token that was drawn, eos included, at the temperature of the draw (1 where
    /// that is 0).
    pub logprobs: Vec<f32>,
    /// Entropy of the policy before each of them, in nats.
    pub entropies: Vec<f32>,
    /// True if the model ended it; otherwise it became too long, or its last query failed.
    pub has_ended: bool,
    /// True if its last query has no answer.
    pub query_failed: bool,
}

/// Draws completions from a policy.
pub trait Sampler {
    /// The completions of each request, in the order of its streams. Prompts do not include bos. A
    /// completion stops where it would exceed the context.
    ///
    /// # Errors
    /// If the sampler runs in another process, and has failed.
    fn complete(
        &self,
        requests: Vec<Request<'_>>,
        sampling: Sampling,
    ) -> Result<Vec<Vec<Completion>>, TrainError>;
}
