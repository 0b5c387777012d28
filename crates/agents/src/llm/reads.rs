//! Completions that look values up ([`prime_lessons::read`]): the model stops at the end of a
//! query, the value is appended, and the model continues after it. To the engine this is one
//! growing text, so what it has computed stays cached.

use super::executor::LlmExecutor;
use super::read_completion::ReadCompletion;
use crate::model::{Completion, CompletionRequest};
use crate::{AgentError, Failure, Sampling, prompt};
use prime_bench::tasks::Machine;
use prime_lessons::QUERY_END;
use prime_protocol::Usage;

impl LlmExecutor {
    /// Completes a request and inserts the values that the text asks for, at most `reads_max` of
    /// them; after the last one the grammar permits no query.
    pub(super) async fn complete_reading(
        &self,
        request: CompletionRequest,
        machine: &dyn Machine,
        reads_max: usize,
    ) -> Result<ReadCompletion, AgentError> {
        if reads_max == 0 {
            return Ok(self.complete(request).await?.into());
        }

        let mut whole =
            self.complete(CompletionRequest { stop: Some(QUERY_END), ..request.clone() }).await?;
        cut_after_query(&mut whole);

        let mut reads = 0;
        while whole.is_stopped {
            let address = prime_lessons::query(&whole.text).unwrap_or_default();
            match prime_lessons::read(machine, address) {
                Ok(value) => whole.text += &value,
                Err(no_such_address) => {
                    return Ok(ReadCompletion { completion: whole, failed: Some(no_such_address) });
                }
            }

            reads += 1;
            let used = u32::try_from(whole.usage.completion).unwrap_or(u32::MAX);
            let left = request.max_tokens.saturating_sub(used);
            // This looks as if one completion had run out of tokens in the middle of its line.
            if left == 0 {
                (whole.is_stopped, whole.is_truncated) = (false, true);
                break;
            }

            let may_read = reads < reads_max;
            let Sampling { seed, .. } = request.sampling;
            let next = CompletionRequest {
                prompt: format!("{}{}", request.prompt, whole.text),
                grammar: Some(prompt::continued_grammar(machine.spec(), may_read).into()),
                stop: may_read.then_some(QUERY_END),
                max_tokens: left,
                // A request draws from the start of its seed's sequence: the same numbers again
                // would correlate.
                sampling: Sampling {
                    seed: seed.wrapping_add((reads as u64).rotate_right(16)),
                    ..request.sampling
                },
                ..request.clone()
            };

            match self.complete(next).await {
                Ok(mut part) => {
                    cut_after_query(&mut part);
                    append(&mut whole, part);
                }
                // As without reads, a text that fills the context is cut off, and judged as it is.
                Err(error) if error.failure == Failure::TooLong => {
                    (whole.is_stopped, whole.is_truncated) = (false, true);
                }
                Err(error) => return Err(error),
            }
        }

        Ok(whole.into())
    }
}

/// Cuts a completion off after its query. The last token may reach beyond the query's end, where
/// the model guessed the value that it is about to be given.
fn cut_after_query(completion: &mut Completion) {
    if completion.is_stopped
        && let Some(end) = completion.text.find(QUERY_END)
    {
        completion.text.truncate(end + QUERY_END.len_utf8());
    }
}

/// Adds what was written after a value. The prompt of `part` contains the whole text so far: values
/// count as prompt, and what the model wrote must be counted only once.
fn append(whole: &mut Completion, part: Completion) {
    let Usage { prompt, completion, cached, reasoning, cost } = part.usage;
    whole.usage.prompt = prompt.saturating_sub(whole.usage.completion);
    // The tokens that the first request found in the cache still count as cached.
    whole.usage.cached = whole.usage.cached.max(cached).min(whole.usage.prompt);
    whole.usage.completion += completion;
    whole.usage.reasoning += reasoning;
    // Each request is paid for, with the part of its prompt that was written before.
    whole.usage.pay(cost);
    whole.text += &part.text;
    whole.tokens.extend(part.tokens);
    whole.logprobs.extend(part.logprobs);
    (whole.is_truncated, whole.is_exhausted, whole.is_stopped) =
        (part.is_truncated, part.is_exhausted, part.is_stopped);
    whole.source = part.source.or(whole.source.take());
}

#[cfg(test)]
mod tests;
