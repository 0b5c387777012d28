//! A turn that has a sequence of the context: its tokens, what to decode next, and how it samples.

mod drafting;
mod outcome;
mod told;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::grammar::Grammar;
use super::kv_cache::{SeqId, Slot, Token};
use super::sampler::{self, Sampler};
use super::sampling_context::SamplingContext;
use super::thinking_phase::{ThinkingPhase, Thought};
use super::turn_timer::TurnTimer;
use super::wire::{Timing, Turn, TurnId};
use super::{EngineError, Finish};
use drafting::Drafting;
use told::Told;

pub(super) struct Sequence {
    id: TurnId,
    seq: SeqId,
    /// The space of the KV cache in which its prefixes are shared.
    space: u64,
    /// The prompt, then the generated tokens.
    tokens: Vec<Token>,
    /// Length of the prompt.
    prompt: usize,
    /// Where the answer begins: after the prompt and the thinking.
    answer: usize,
    /// The thinking, until the answer begins.
    thinking: Option<ThinkingPhase>,
    /// Where the thinking's own text ends.
    thought: usize,
    /// Tokens of the prompt that were in the KV cache.
    cached: usize,
    /// Tokens in the KV cache.
    computed: usize,
    /// Where decodes pause so that the state can be saved: ascending, beyond what is computed.
    pauses: Vec<usize>,
    /// Number of tokens in the current batch, and the row of the first one.
    batched: usize,
    row: i32,
    /// Finds drafts, where the engine speculates.
    drafting: Option<Drafting>,
    /// The draft in the current batch, after its tokens.
    draft: Vec<Token>,
    /// Longest text, the prompt included: what the KV cache has room for.
    tokens_max: usize,
    sampler: Sampler,
    grammar: Option<Grammar>,
    stop: Option<char>,
    /// Most tokens of the answer.
    max_tokens: usize,
    with_logprobs: bool,
    with_sent: bool,
    ignore_end: bool,
    logprobs: Vec<f32>,
    forced: usize,
    /// Set once the last token is chosen; log-probabilities may still have to be computed.
    finish: Option<Finish>,
    timer: Option<TurnTimer>,
    /// Present while somebody watches the turn.
    told: Option<Told>,
}

/// What a turn begins with.
pub(super) struct Begun {
    pub(super) prompt: Vec<Token>,
    /// What comes before the answer.
    pub(super) thinking: Option<ThinkingPhase>,
    /// Constrains the answer.
    pub(super) grammar: Option<Grammar>,
    /// Most tokens to generate, thinking included.
    pub(super) generated_max: u32,
    /// True if what follows is drafted from the text.
    pub(super) is_drafted: bool,
}

/// What follows a decode.
pub(super) enum Step {
    Continue,
    Finish(Result<Finish, EngineError>),
}

impl Sequence {
    pub(super) fn new(
        turn: &Turn<'_>,
        slot: Slot,
        Begun { prompt, thinking, grammar, generated_max, is_drafted }: Begun,
        timer: Option<TurnTimer>,
        sampling: &SamplingContext<'_>,
    ) -> Self {
        let mut sequence = Self {
            id: turn.id,
            seq: slot.seq,
            space: turn.space,
            prompt: prompt.len(),
            answer: prompt.len(),
            thought: prompt.len(),
            cached: slot.cached,
            thinking,
            tokens_max: prompt.len() + generated_max as usize,
            tokens: prompt,
            computed: slot.cached,
            pauses: Vec::new(),
            batched: 0,
            row: 0,
            drafting: is_drafted.then(Drafting::default),
            draft: Vec::new(),
            sampler: Sampler::new(turn.sampling),
            grammar,
            stop: turn.stop,
            max_tokens: turn.max_tokens as usize,
            with_logprobs: turn.logprobs,
            with_sent: turn.with_sent,
            ignore_end: turn.ignore_end,
            logprobs: Vec::new(),
            forced: 0,
            finish: None,
            timer,
            told: turn.watched.then(Told::default),
        };

        if sequence.grammar.as_mut().is_some_and(Grammar::is_exhausted) {
            sequence.finish = Some(Finish::Exhausted);
        } else if sequence.thinking.as_ref().is_none_or(ThinkingPhase::is_spent) {
            // A grammar may begin with forced tokens.
            sequence.begin_answer(true, sampling.model);
        }

        sequence
    }

    /// Ends the thinking, whose end is yet to be written if it `is_open`, and begins the answer.
    fn begin_answer(&mut self, is_open: bool, model: &LlamaModel) {
        if let Some(thinking) = self.thinking.take() {
            self.thought = self.tokens.len();
            let rest = if is_open { thinking.close() } else { thinking.then() };
            self.tokens.extend_from_slice(rest);
            self.forced += rest.len();
            // Without a budget of its own, the thinking is a part of the generation.
            if thinking.budget().is_none() {
                let spent = self.tokens.len() - self.prompt;
                self.max_tokens = self.max_tokens.saturating_sub(spent);
            }
            self.answer = self.tokens.len();
            if self.max_tokens == 0 {
                self.finish = Some(Finish::Length);
                return;
            }
        }
        self.force(model);
    }

    pub(super) fn id(&self) -> TurnId {
        self.id
    }

    pub(super) fn seq(&self) -> SeqId {
        self.seq
    }

    pub(super) fn space(&self) -> u64 {
        self.space
    }

    /// Returns whether more of its prompt is to be computed than the last token, which any decode
    /// includes.
    pub(super) fn is_in_prefill(&self) -> bool {
        self.computed + 1 < self.prompt
    }

    /// The whole prompt, computed or not.
    pub(super) fn prompt(&self) -> &[Token] {
        &self.tokens[..self.prompt]
    }

    /// Tokens to decode before the next one can be chosen, at least 1.
    pub(super) fn pending(&self) -> usize {
        // The last token of a text is never decoded.
        let wanted = self.tokens.len() - usize::from(self.finish.is_some());
        // A grammar may turn out to be exhausted once all tokens are computed.
        wanted.saturating_sub(self.computed)
    }

    /// Tokens of the next decode, at least 1: what is pending, up to the next pause.
    pub(super) fn wanted(&self) -> usize {
        let pause = self.pauses.first().map_or(usize::MAX, |pause| pause - self.computed);
        self.pending().min(pause)
    }

    /// Makes decodes pause after the first `length` tokens, which are a part of the prompt. Returns
    /// whether they are yet to be computed.
    pub(super) fn pause_at(&mut self, length: usize) -> bool {
        let is_ahead = self.computed < length && length <= self.prompt;
        if let (true, Err(at)) = (is_ahead, self.pauses.binary_search(&length)) {
            self.pauses.insert(at, length);
        }
        is_ahead
    }

    /// The tokens that are computed, if the sequence has just reached a pause.
    pub(super) fn paused(&mut self) -> Option<&[Token]> {
        if self.pauses.first() != Some(&self.computed) {
            return None;
        }
        self.pauses.remove(0);
        Some(&self.tokens[..self.computed])
    }

    pub(super) fn forced(&self) -> usize {
        self.forced
    }

    /// The durations of the turn's phases, if they are measured.
    pub(super) fn timing(&self) -> Option<Timing> {
        self.timer.as_ref().map(TurnTimer::timing)
    }

    /// Adds the next `count` tokens to the batch; `count` is at most [`Self::pending`]. Where the
    /// next choice follows, a draft of at most `room` tokens comes after them; returns its length.
    pub(super) fn add(&mut self, batch: &mut LlamaBatch<'_>, count: usize, room: usize) -> usize {
        self.row = batch.n_tokens();
        self.batched = count;
        let end = self.computed + count;
        self.prepare_draft(end, room);

        let own = (self.computed..end).map(|at| (at, self.tokens[at], self.wants_logits(at)));
        let drafted = (end..).zip(&self.draft).map(|(at, token)| (at, *token, true));
        for (at, token, with_logits) in own.chain(drafted) {
            let position = i32::try_from(at)
                .expect("invariant: positions are below context_tokens, below 2^31");
            batch
                .add(LlamaToken(token), position, &[self.seq.raw()], with_logits)
                .expect("invariant: the caller left room in the batch");
        }
        self.draft.len()
    }

    fn wants_logits(&self, at: usize) -> bool {
        let is_of_answer = self.thinking.is_none() && at + 1 >= self.answer;
        at + 1 == self.tokens.len() || (self.with_logprobs && is_of_answer)
    }

    /// This turn's tokens from `start` on that are computed.
    pub(super) fn computed_from(&self, start: usize) -> &[Token] {
        &self.tokens[start..self.computed]
    }

    /// The number of its tokens that are computed.
    pub(super) fn computed(&self) -> usize {
        self.computed
    }

    /// Advances past the decoded batch, and samples the next token if nothing is pending, and those
    /// after it as far as the draft foresaw them.
    pub(super) fn decoded(
        &mut self,
        context: &LlamaContext<'_>,
        sampling: &mut SamplingContext<'_>,
    ) -> Step {
        let (row, start) = (self.row, self.computed);
        self.computed += std::mem::take(&mut self.batched);
        let own_end = self.computed;
        let end = own_end + self.draft.len();

        for (row, at) in (row..).zip(start..end) {
            if at >= own_end {
                // A drafted token counts if it was chosen and the text continues.
                let is_last = self.finish.is_some() && at + 1 == self.tokens.len();
                if self.tokens.get(at) != Some(&self.draft[at - own_end]) || is_last {
                    break;
                }
                self.computed = at + 1;
            }
            if !self.wants_logits(at) {
                continue;
            }

            let logits = context.get_logits_ith(row);
            // A token that already follows was forced: only its log-probability is wanted.
            let step = match self.tokens.get(at + 1).copied() {
                Some(forced) => self.record_logprob(logits, forced, sampling),
                None if self.thinking.is_some() => self.think(logits, sampling),
                None => self.sample(logits, sampling),
            };
            if let Err(error) = step {
                return Step::Finish(Err(error));
            }
        }
        if let Some(drafting) = &mut self.drafting {
            drafting.verified(self.draft.len(), self.computed - own_end);
        }
        self.finished().map_or(Step::Continue, |finish| Step::Finish(Ok(finish)))
    }

    fn record_logprob(
        &mut self,
        logits: &[f32],
        token: Token,
        sampling: &mut SamplingContext<'_>,
    ) -> Result<(), EngineError> {
        if self.with_logprobs {
            let place = usize::try_from(token).map_err(|_| EngineError::NotFinite)?;
            let logprob = sampler::logprob(logits, place, &mut sampling.scratch)
                .ok_or(EngineError::NotFinite)?;
            self.logprobs.push(logprob);
        }
        Ok(())
    }

    /// Samples the next token of the thinking, which may be its last one.
    fn think(
        &mut self,
        logits: &[f32],
        sampling: &mut SamplingContext<'_>,
    ) -> Result<(), EngineError> {
        let Some(thinking) = &mut self.thinking else { return Ok(()) };
        let chosen = self.sampler.sample(logits, &mut sampling.scratch);
        let chosen = chosen.ok_or(EngineError::NotFinite)?;
        let token = Token::try_from(chosen).expect("invariant: a vocabulary is counted by an i32");
        let ends_text = sampling.ends.contains(&token.cast_unsigned());
        if let Some(timer) = &mut self.timer {
            timer.token();
        }

        // A text that ends without an answer: only its thinking has ended.
        if ends_text && thinking.has_begun() {
            self.begin_answer(true, sampling.model);
            return Ok(());
        }

        let mut text = Vec::new();
        sampling.model.vocab().token_to_piece_into(LlamaToken(token), &mut text, true, None);
        let may_be_answer = !thinking.has_begun();
        let meaning = if ends_text { Thought::Absent } else { thinking.write(&text) };
        let is_thought = thinking.has_begun();
        self.tokens.push(token);

        // A token that may become a part of the answer needs its log-probability.
        if is_thought {
            self.logprobs.clear();
        } else if may_be_answer {
            self.record_logprob(logits, token, sampling)?;
        }

        match meaning {
            Thought::Continues if self.is_used_up() => {
                let thinking = self.thinking.take();
                // What may have become a mark is an answer.
                if thinking.is_some_and(|thinking| thinking.has_begun()) {
                    self.answer = self.tokens.len();
                    self.thought = self.answer;
                }
                self.finish = Some(Finish::Length);
            }
            Thought::Continues => {}
            Thought::Ended => self.begin_answer(false, sampling.model),
            Thought::Spent => self.begin_answer(true, sampling.model),
            Thought::Absent => {
                self.thinking = None;
                self.accept(token, sampling)?;
            }
        }
        Ok(())
    }

    /// Returns whether the limit of generated tokens is reached.
    fn is_used_up(&self) -> bool {
        self.tokens.len() - self.answer >= self.max_tokens
            && self.thinking.as_ref().is_none_or(|thinking| thinking.budget().is_none())
    }

    /// Samples the next token, and appends those that the grammar then forces.
    fn sample(
        &mut self,
        logits: &[f32],
        sampling: &mut SamplingContext<'_>,
    ) -> Result<(), EngineError> {
        let scratch = &mut sampling.scratch;
        let chosen = match &mut self.grammar {
            None if self.ignore_end => self
                .sampler
                .sample_excluding(&sampling.ends, logits, scratch)
                .ok_or(EngineError::NotFinite)?,
            None => self.sampler.sample(logits, scratch).ok_or(EngineError::NotFinite)?,
            Some(grammar) => match grammar.sample(logits, &mut self.sampler, scratch)? {
                Some(chosen) => chosen,
                None if grammar.is_exhausted() => {
                    self.finish = Some(Finish::Exhausted);
                    return Ok(());
                }
                None => {
                    let generated = self.tokens.len() - self.answer;
                    return Err(EngineError::Grammar {
                        detail: format!(
                            "it permits none of the model's tokens after {generated} generated ones"
                        ),
                    });
                }
            },
        };

        let token = Token::try_from(chosen).expect("invariant: a vocabulary is counted by an i32");
        self.record_logprob(logits, token, sampling)?;
        self.tokens.push(token);

        if let Some(timer) = &mut self.timer {
            timer.token();
        }
        self.accept(token, sampling)
    }

    /// Advances by a token of the answer, which is the last one of `tokens`.
    fn accept(
        &mut self,
        token: Token,
        sampling: &mut SamplingContext<'_>,
    ) -> Result<(), EngineError> {
        // The first reason that holds ends the turn; only a text that continues advances its
        // grammar.
        if sampling.ends.contains(&token.cast_unsigned()) {
            self.finish = Some(Finish::EndOfText);
        } else if self.stops_at(token) {
            self.finish = Some(Finish::Stopped);
        } else if self.is_used_up() {
            self.finish = Some(Finish::Length);
        } else if let Some(grammar) = &mut self.grammar {
            grammar.accept(token)?;
            self.force(sampling.model);
        }
        Ok(())
    }

    fn stops_at(&self, token: Token) -> bool {
        self.stop.zip(self.grammar.as_ref()).is_some_and(|(stop, grammar)| grammar.has(token, stop))
    }

    /// Appends the tokens that the grammar forces, up to `max_tokens` and the character to stop at.
    fn force(&mut self, model: &LlamaModel) {
        let Some(grammar) = &mut self.grammar else { return };
        let room = self.max_tokens - (self.tokens.len() - self.answer);
        let before = self.tokens.len();
        let ends = grammar.force(model, room, &mut self.tokens);

        // The grammar does not know the character to stop at and may force tokens beyond it.
        let stop = self
            .stop
            .and_then(|_| self.tokens[before..].iter().position(|token| self.stops_at(*token)));
        if let Some(stop) = stop {
            self.tokens.truncate(before + stop + 1);
        }

        self.forced += self.tokens.len() - before;

        if stop.is_some() {
            self.finish = Some(Finish::Stopped);
        } else if ends {
            self.finish = Some(Finish::EndOfText);
        } else if self.is_used_up() {
            self.finish = Some(Finish::Length);
        }
    }

    /// Why it ended, once its last token is chosen and the requested log-probabilities are
    /// computed. A grammar that forces the whole text, or permits none, ends a turn before its
    /// first decode.
    pub(super) fn finished(&self) -> Option<Finish> {
        let has_logprobs =
            !self.with_logprobs || self.tokens.len() == self.answer || self.pending() == 0;
        self.finish.filter(|_| has_logprobs)
    }
}
