//! The progress of a watched turn, for its caller.

use std::time::{Duration, Instant};

use llama_cpp_2::model::LlamaModel;

use super::super::{Progress, progress};
use super::Sequence;
use super::outcome::written;

/// Pause between two reports of progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// A turn with at least this many prompt tokens to compute reports before it begins: on a CPU they
/// take seconds.
const LONG_PROMPT_TOKENS: usize = 64;

/// What the caller of a watched turn was told last.
#[derive(Default)]
pub(super) struct Told {
    /// The time of the last report, or of the first look at the turn.
    at: Option<Instant>,
    tokens: usize,
    computed: usize,
}

impl Sequence {
    pub(crate) fn is_watched(&self) -> bool {
        self.told.is_some()
    }

    /// The progress of the turn, if it is watched, has advanced, and the pause has passed. A turn
    /// with a long prompt reports at once.
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
