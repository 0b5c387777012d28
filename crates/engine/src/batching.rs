//! What a context computes: continuous batching of all its active turns.
//!
//! Every decode carries the tokens that each turn needs before its next sampling step, and a slice
//! of the pending prefill. Turns join between decodes and leave as soon as they are over. It knows
//! nothing of processes and sockets: it runs on a [`Transport`].
#![allow(
    clippy::disallowed_methods,
    reason = "heartbeats are for the watchdog, which measures real time"
)]

mod decoding;

use std::rc::Rc;
use std::time::{Duration, Instant};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::awaited_prefix::is_prefix_awaited;
use super::context_cache::{self, ContextCache};
use super::decode_latency::DecodeLatency;
use super::fair_queue::{Decision, FairQueue};
use super::ffi::LoadedAdapter;
use super::grammar::GrammarCache;
use super::kv_cache::{CacheOp, KvCache, SeqId};
use super::model::{Loaded, describe};
use super::prompts::Prompts;
use super::sampling_context::SamplingContext;
use super::sequence::{Begun, Sequence};
use super::spec::Fault;
use super::transport::Transport;
use super::turn_timer::TurnTimer;
use super::wire::{ContextId, Facts, FromWorker, Timing, Turn, TurnId};
use super::{
    Adapter, EngineCounts, EngineError, EngineSpec, Finish, Generation, KvPool, Speculation, ffi,
    fit,
};

/// Longest silence towards the parent while there are turns.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// The state of the context is unknown; the worker must end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Fatal(pub(super) String);

/// A turn that waits for a sequence.
struct Queued {
    turn: Turn<'static>,
    begun: Begun,
    timer: Option<TurnTimer>,
}

pub(super) struct Batcher<'m> {
    id: ContextId,
    context: LlamaContext<'m>,
    /// What the context applies; dropped after it, as fields are in their order.
    adapters: Vec<(Adapter, Rc<LoadedAdapter<'m>>)>,
    model: &'m LlamaModel,
    prompts: Prompts<'m>,
    fault: Option<Fault>,
    batch: LlamaBatch<'static>,
    batch_tokens: usize,
    /// Most tokens of a pass of one turn, where passes are divided.
    own_pass_max: Option<usize>,
    /// Most prompt tokens of a decode while turns generate.
    prefill_tokens: usize,
    /// True if drafts are verified.
    is_drafted: bool,
    /// Longest prompt plus generation.
    turn_tokens_max: u32,
    kv_cache: ContextCache,
    /// Tokens that the layers with the shortest window attend to; 0 if no layer has one.
    window: u64,
    cache_ops: Vec<CacheOp>,
    queued: FairQueue<TurnId, Queued>,
    /// Sorted by sequence id: with a split KV pool llama.cpp computes adjacent sequences together,
    /// and others one after another.
    active: Vec<Sequence>,
    grammars: GrammarCache<'m>,
    sampling: SamplingContext<'m>,
    decode_latency: DecodeLatency,
    /// Answers that are not sent yet.
    answers: Vec<FromWorker>,
    counts: EngineCounts,
    /// The time of the last report of counts, and its counts.
    reported: (Instant, EngineCounts),
}

impl<'m> Batcher<'m> {
    pub(super) fn new(
        id: ContextId,
        context: LlamaContext<'m>,
        adapters: Vec<(Adapter, Rc<LoadedAdapter<'m>>)>,
        loaded: &'m Loaded,
        spec: &EngineSpec,
        fault: Option<Fault>,
    ) -> Self {
        let model = &loaded.model;
        // llama.cpp limits the batch to the context.
        let batch_tokens = context.n_batch() as usize;

        let sequences = spec.sequences();
        let sequence_tokens = match spec.kv {
            KvPool::Shared => context.n_ctx(),
            KvPool::Split => context.n_ctx() / u32::from(sequences),
        };

        let rollback = context_cache::rollback(model, &loaded.header, spec);
        let prefill_tokens =
            if spec.prefill_tokens == 0 { spec.batch_tokens / 4 } else { spec.prefill_tokens };

        let turn_tokens_max = sequence_tokens.min(model.n_ctx_train());
        Self {
            batch: LlamaBatch::new(batch_tokens, 1),
            batch_tokens,
            own_pass_max: fit::divides_passes(spec).then_some(context.n_ubatch() as usize),
            prefill_tokens: prefill_tokens.max(1) as usize,
            is_drafted: spec.speculation == Speculation::Ngram
                && context_cache::undrafted(model, &loaded.header).is_none(),
            turn_tokens_max,
            prompts: Prompts::new(model, spec, turn_tokens_max),
            kv_cache: KvCache::new(
                spec.kv,
                rollback,
                context.n_ctx(),
                sequences,
                spec.sequences_max,
                context_cache::unused_max(rollback, spec),
            ),
            window: loaded.header.sliding_window(),
            cache_ops: Vec::new(),
            queued: FairQueue::default(),
            active: Vec::new(),
            grammars: GrammarCache::new(model),
            sampling: SamplingContext::new(model),
            decode_latency: DecodeLatency::new(),
            answers: Vec::new(),
            counts: EngineCounts::default(),
            reported: (Instant::now(), EngineCounts::default()),
            id,
            context,
            adapters,
            model,
            fault,
        }
    }

    /// Decodes one token: readiness means that decoding works.
    pub(super) fn warm_up(&mut self) -> Result<(), EngineError> {
        // A vocabulary may have no begin-of-text token; any token serves here.
        let begin = self.model.vocab().bos();
        let token = if (0..self.model.vocab().n_tokens()).contains(&begin.0) {
            begin
        } else {
            LlamaToken(0)
        };

        self.batch.clear();
        self.batch.add(token, 0, &[0], true).expect("invariant: a batch holds one token");
        self.context.decode(&mut self.batch).map_err(|error| EngineError::WorkerDied {
            detail: format!("the first decode failed: {error}: {}", ffi::take_logs()),
        })?;

        let finite = self.context.get_logits_ith(0).iter().all(|logit| logit.is_finite());
        // The cache's bookkeeping starts with an empty pool.
        self.context.clear_kv_cache();
        if finite { Ok(()) } else { Err(EngineError::NotFinite) }
    }

    pub(super) fn facts(&self, loaded: &Loaded, notes: Vec<String>) -> Facts {
        Facts {
            model: describe(&loaded.model),
            device: loaded.device.clone(),
            notes,
            context_tokens: self.context.n_ctx(),
            turn_tokens_max: self.turn_tokens_max,
        }
    }

    pub(super) fn adapters(&self) -> &[(Adapter, Rc<LoadedAdapter<'m>>)] {
        &self.adapters
    }

    /// Returns whether it has no turns.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.queued.is_empty()
    }

    /// Admits turns, decodes one batch and reports.
    pub(super) fn step(&mut self, transport: &mut impl Transport) -> Result<(), Fatal> {
        self.admit()?;
        self.tell(transport);
        self.decode(transport)?;
        self.report(transport, false);
        Ok(())
    }

    /// Tells how far the watched turns are.
    fn tell(&mut self, transport: &mut impl Transport) {
        let mut watched = self.active.iter_mut().filter(|turn| turn.is_watched()).peekable();
        if watched.peek().is_none() {
            return;
        }

        let now = Instant::now();
        let mut is_told = false;
        for turn in watched {
            if let Some(progress) = turn.news(now, self.model) {
                transport.send(FromWorker::Progress { id: turn.id(), progress });
                is_told = true;
            }
        }
        // A decode may take seconds.
        if is_told {
            transport.flush();
        }
    }

    /// Sends the answers, and before them the counts, so that a caller who has an answer finds it
    /// counted. Without answers, counts are sent before a wait and after a long silence.
    pub(super) fn report(&mut self, transport: &mut impl Transport, idle: bool) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);

        let stats = self.kv_cache.stats();
        self.counts.shared_tokens = stats.shared_tokens;
        self.counts.forks = stats.forks;
        self.counts.rollbacks = stats.rollbacks;
        self.counts.evictions = stats.evictions;
        (self.counts.live, self.counts.queued) =
            (count(self.active.len()), count(self.queued.len()));

        let (last, reported) = self.reported;
        let is_due = (idle || !self.answers.is_empty()) && reported != self.counts;
        if is_due || last.elapsed() > HEARTBEAT {
            self.counts.decode_p99_us = self.decode_latency.p99_us();
            self.reported = (Instant::now(), self.counts);
            transport.send(FromWorker::Counts { context: self.id, counts: self.counts });
        }

        self.answers.drain(..).for_each(|answer| transport.send(answer));
        transport.flush();
    }

    pub(super) fn enqueue(&mut self, mut turn: Turn<'static>) {
        match &self.fault {
            Some(Fault::AbortOn(prompt)) if *prompt == turn.prompt => ffi::abort_on_purpose(),
            Some(Fault::HangOn(prompt)) if *prompt == turn.prompt => loop {
                std::thread::park();
            },
            _ => {}
        }

        let timer = turn.timed.then(TurnTimer::start);
        match self.prepare(&mut turn) {
            Ok(begun) => {
                let (group, id) = (turn.group, turn.id);
                self.queued.push(group, id, Queued { turn, begun, timer });
            }
            Err(error) => self.answer(turn.id, Err(error), timer.as_ref().map(TurnTimer::timing)),
        }
    }

    fn answer(
        &mut self,
        id: TurnId,
        result: Result<Generation, EngineError>,
        timing: Option<Timing>,
    ) {
        self.answers.push(FromWorker::Done { id, result, timing });
    }

    /// Tokenizes a turn's prompt and compiles its grammar.
    fn prepare(&mut self, turn: &mut Turn<'static>) -> Result<Begun, EngineError> {
        let limit = self.turn_tokens_max;
        let (prompt, mut thinking) = self.prompts.tokens(turn)?;
        if prompt.is_empty() {
            let detail = "the prompt is empty and the model adds no token to it".to_owned();
            return Err(EngineError::BadRequest { detail });
        }

        let tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        // The end of the thinking is written too.
        let closing = thinking.as_ref().map_or(0, |thinking| thinking.close().len());
        let closing = u32::try_from(closing).unwrap_or(u32::MAX);
        // No more can be generated than the prompt leaves room for.
        let room = limit.saturating_sub(tokens).saturating_sub(closing);
        turn.max_tokens = turn.max_tokens.min(room);
        if turn.max_tokens == 0 {
            return Err(EngineError::PromptTooLong { tokens, limit });
        }

        // The answer comes first: thinking gets what it leaves.
        let left = room - turn.max_tokens;
        if let Some(thinking) = &mut thinking {
            thinking.limit(left);
        }
        let budget = thinking.as_ref().and_then(|thinking| thinking.budget()).unwrap_or(0);
        let generated_max = turn.max_tokens + closing + budget;

        let start = |text: &str| self.grammars.start(text, turn, &self.sampling.ends);
        let grammar = turn.grammar.as_deref().map(start).transpose()?;
        Ok(Begun { prompt, thinking, grammar, generated_max, is_drafted: self.is_drafted })
    }

    /// Drops a turn without an answer.
    pub(super) fn cancel(&mut self, id: TurnId) -> Result<(), Fatal> {
        if self.queued.remove(id).is_some() {
            self.counts.cancelled += 1;
            return Ok(());
        }

        let Some(at) = self.active.iter().position(|sequence| sequence.id() == id) else {
            // Already answered: answer and cancellation crossed.
            return Ok(());
        };

        let cancelled = self.active.remove(at);
        self.counts.cancelled += 1;
        self.release(cancelled.seq(), true)
    }

    /// Gives sequences to queued turns, round-robin over groups, while sequences and cells last.
    fn admit(&mut self) -> Result<(), Fatal> {
        while !self.queued.is_empty() && !self.kv_cache.is_full() {
            // Borrowed field by field: the closure needs them while `queued` is borrowed.
            let (kv_cache, active, cache_ops) =
                (&mut self.kv_cache, &mut self.active, &mut self.cache_ops);
            let (context, window) = (&self.context, self.window);
            let is_whole = |seq, length| context_cache::is_whole(context, window, seq, length);
            let mut slot = None;
            let queued = self.queued.take(|queued| {
                let (space, prompt) = (queued.turn.space, &queued.begun.prompt);
                if is_prefix_awaited(active, kv_cache, (space, prompt), is_whole) {
                    return Decision::Skip;
                }
                // One token more than needed: the last one is chosen but never decoded.
                let most = queued.begun.generated_max as usize;
                slot = kv_cache.allocate(space, prompt, most, is_whole, cache_ops);
                // No turn overtakes one that waits for room, or that one might starve.
                if slot.is_some() { Decision::Take } else { Decision::Stop }
            });

            self.apply_cache_ops()?;
            let (Some(Queued { turn, begun, mut timer, .. }), Some(slot)) = (queued, slot) else {
                break;
            };
            if let Some(timer) = &mut timer {
                timer.admitted();
            }
            self.counts.prompt_tokens += begun.prompt.len() as u64;
            let mut sequence = Sequence::new(&turn, slot, begun, timer, &self.sampling);
            if self.kv_cache.saves_states() {
                // Other prompts diverge where this one did, and a retry starts at the last token.
                slot.branch.map(|branch| sequence.pause_at(branch));
                sequence.pause_at(sequence.prompt().len() - 1);
            }

            // A grammar that forces the whole text, or permits none, needs no decode.
            if let Some(finish) = sequence.finished() {
                self.finish(sequence, Ok(finish))?;
            } else {
                let at = self.active.partition_point(|other| other.seq() < sequence.seq());
                self.active.insert(at, sequence);
            }
        }
        Ok(())
    }

    fn apply_cache_ops(&mut self) -> Result<(), Fatal> {
        context_cache::apply(&mut self.context, &self.kv_cache, &mut self.cache_ops)
    }

    fn finish(
        &mut self,
        sequence: Sequence,
        result: Result<Finish, EngineError>,
    ) -> Result<(), Fatal> {
        let (id, seq, forced, timing) =
            (sequence.id(), sequence.seq(), sequence.forced(), sequence.timing());
        // After an overflow, or logits that are not finite, the cached tokens are not reliable.
        let is_sound = result.is_ok();

        let result = sequence.into_generation(result, self.model);
        if let Ok(generation) = &result {
            let thought = u64::from(generation.thought_tokens);
            self.counts.generated_tokens += generation.tokens.len() as u64 + thought;
            self.counts.forced_tokens += forced as u64;
        }

        self.answer(id, result, timing);
        self.release(seq, is_sound)
    }

    fn release(&mut self, seq: SeqId, is_sound: bool) -> Result<(), Fatal> {
        self.kv_cache.release(seq, is_sound, &mut self.cache_ops);
        self.apply_cache_ops()
    }
}
