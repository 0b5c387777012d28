//! How far a watched turn is, for its caller.

use std::time::{Duration, Instant};

use llama_cpp_2::model::LlamaModel;

use super::super::{Progress, progress};
use super::Sequence;
use super::outcome::written;

/// Pause between two reports of how far a turn is.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// Tokens of a prompt that are still to be computed from which on a turn tells so before it begins:
/// on a CPU they take seconds.
const LONG_PROMPT_TOKENS: usize = 64;

/// What the caller of a watched turn was told last.
#[derive(Default)]
pub(super) struct Told {
    /// When, or when the turn was first looked at.
    at: Option<Instant>,
    tokens: usize,
    computed: usize,
}

impl Sequence {
    pub(crate) fn is_watched(&self) -> bool {
        self.told.is_some()
    }

    /// How far the turn is, if it is watched, that is new, and a pause has passed; a turn with a
    /// long prompt before it tells so at once.
    pub(crate) fn news(&mut self, now: Instant, model: &LlamaModel) -> Option<Progress> {
        let told = self.told.as_mut()?;
        let is_new = (told.tokens, told.computed) != (self.tokens.len(), self.computed);
        let is_due = match told.at {
            Some(at) => now.duration_since(at) >= PROGRESS_PAUSE,
            None => self.prompt.saturating_sub(self.computed) >= LONG_PROMPT_TOKENS,
        };
        told.at.get_or_insert(now);
        if !is_new || !is_due {
            return None;
        }

        *told = Told { at: Some(now), tokens: self.tokens.len(), computed: self.computed };
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        Some(Progress {
            text: progress::end_of(&written(&self.tokens[self.prompt..], model, false)),
            prompt_tokens: count(self.prompt),
            prompt_computed: count(self.computed.min(self.prompt)),
        })
    }
}
