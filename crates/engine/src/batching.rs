//! The loop that owns a context: continuous batching of all live turns.
//!
//! Every decode carries what each turn needs before its next choice, and a slice of the prompts that are not computed yet.
//! Turns join between decodes and leave as soon as they are over. It knows nothing of processes and sockets; whoever runs
//! it gives it a [`Port`].
#![allow(clippy::disallowed_methods, reason = "the beat is for the watchdog, which measures real time")]

use std::time::{Duration, Instant};

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::fair::{FairQueue, Look};
use super::grammar::{Grammar, Grammars};
use super::live::{Live, Step};
use super::memory::{Change, Memory, Seq, Token, common};
use super::pace::Pace;
use super::port::{Intake, Port};
use super::spec::Fault;
use super::tools::Tools;
use super::wire::{Facts, FromWorker, ToWorker, Turn, TurnId};
use super::{EngineCounts, EngineError, EngineSpec, Finish, Generation, KvPool, chat, ffi, model, share};

/// Longest silence towards the parent while there are turns.
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(100);
/// A turn waits for another one's prompt to be computed if it has so many tokens of it in common.
const FOLLOWED_MIN: usize = 16;

/// What nobody used goes from a shared pool once so many tokens were computed: then having it looked at has cost about as
/// much as computing it again. Measured on a processor; on a GPU an estimate (no figure yet), where looking is cheap.
const KEPT_TOKENS_CPU: u64 = 256;
const KEPT_TOKENS_GPU: u64 = 4096;

/// The context cannot be trusted any more; the worker must end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Fatal(String);

/// Loads the model, reports readiness, and serves turns until the port closes.
pub(super) fn serve(spec: &EngineSpec, fault: Option<Fault>, port: &mut impl Port) -> Result<(), Fatal> {
    let refuse = |port: &mut dyn Port, error| {
        port.put(FromWorker::Refused(error));
        port.flush();
        Ok(())
    };
    let loaded = match model::load(spec) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(port, error),
    };
    let context = match model::context(&loaded, spec) {
        Ok(context) => context,
        Err(error) => return refuse(port, error),
    };
    let mut batcher = Batcher::new(context, &loaded.model, spec, fault);
    if let Err(error) = batcher.warm_up() {
        return refuse(port, error);
    }
    port.put(FromWorker::Ready(Facts {
        model: model::describe(&loaded.model),
        device: loaded.device.clone(),
        context_tokens: batcher.context.n_ctx(),
        turn_tokens_max: batcher.turn_tokens_max,
    }));
    port.flush();
    batcher.run(port)
}

/// A turn that has no sequence yet.
struct Queued {
    turn: Turn<'static>,
    prompt: Vec<Token>,
    grammar: Option<Grammar>,
}

struct Batcher<'m> {
    context: LlamaContext<'m>,
    model: &'m LlamaModel,
    fault: Option<Fault>,
    batch: LlamaBatch<'static>,
    batch_tokens: usize,
    /// Most tokens of prompts in a decode that others wait for.
    prefill_tokens: usize,
    /// Longest prompt plus generation.
    turn_tokens_max: u32,
    /// Bytes of the longest token, for judging a prompt before it is tokenized.
    token_bytes_max: usize,
    memory: Memory,
    changes: Vec<Change>,
    queued: FairQueue<Queued>,
    /// In the order of their sequences: llama.cpp computes neighbours together, and others one after another if the
    /// KV pool is split.
    live: Vec<Live>,
    grammars: Grammars<'m>,
    tools: Tools<'m>,
    pace: Pace,
    /// Turns that are over, and not told yet.
    answers: Vec<(TurnId, Result<Generation, EngineError>)>,
    counts: EngineCounts,
    told: (Instant, EngineCounts),
}

impl<'m> Batcher<'m> {
    fn new(context: LlamaContext<'m>, model: &'m LlamaModel, spec: &EngineSpec, fault: Option<Fault>) -> Self {
        // llama.cpp clamps the batch to the context.
        let batch_tokens = context.n_batch() as usize;
        let sequences = spec.sequences();
        let sequence_tokens = match spec.kv {
            KvPool::Shared => context.n_ctx(),
            KvPool::Split => context.n_ctx() / u32::from(sequences),
        };
        let kept_tokens = if spec.device.is_cpu() { KEPT_TOKENS_CPU } else { KEPT_TOKENS_GPU };
        let prefill_tokens = if spec.prefill_tokens == 0 { spec.batch_tokens / 4 } else { spec.prefill_tokens };
        Self {
            batch: LlamaBatch::new(batch_tokens, 1),
            batch_tokens,
            prefill_tokens: prefill_tokens.max(1) as usize,
            turn_tokens_max: sequence_tokens.min(model.n_ctx_train()),
            token_bytes_max: longest_token(model),
            memory: Memory::new(spec.kv, context.n_ctx(), sequences, spec.sequences_max, kept_tokens),
            changes: Vec::new(),
            queued: FairQueue::default(),
            live: Vec::new(),
            grammars: Grammars::new(model),
            tools: Tools::new(model),
            pace: Pace::new(),
            answers: Vec::new(),
            counts: EngineCounts::default(),
            told: (Instant::now(), EngineCounts::default()),
            context,
            model,
            fault,
        }
    }

    /// Readiness is a real decode of one token.
    fn warm_up(&mut self) -> Result<(), EngineError> {
        let begin = self.model.vocab().bos();
        let token = if (0..self.model.vocab().n_tokens()).contains(&begin.0) { begin } else { LlamaToken(0) };
        self.batch.clear();
        self.batch.add(token, 0, &[0], true).expect("invariant: a batch holds one token");
        self.context.decode(&mut self.batch).map_err(|error| EngineError::WorkerDied {
            detail: format!("the first decode failed: {error}: {}", ffi::take_logs()),
        })?;
        let finite = self.context.get_logits_ith(0).iter().all(|logit| logit.is_finite());
        self.context.clear_kv_cache();
        if finite { Ok(()) } else { Err(EngineError::NotFinite) }
    }

    fn run(&mut self, port: &mut impl Port) -> Result<(), Fatal> {
        loop {
            loop {
                let idle = self.live.is_empty() && self.queued.is_empty();
                if idle {
                    // A refusal may be all that there was to say before the wait.
                    self.tell(port, true);
                }
                match port.take(idle) {
                    Intake::Frame(ToWorker::Turn(turn)) => self.enqueue(turn),
                    Intake::Frame(ToWorker::Cancel(id)) => self.cancel(id)?,
                    Intake::Frame(ToWorker::Start { .. }) => return Err(Fatal("started twice".to_owned())),
                    Intake::Nothing => break,
                    Intake::Closed => return Ok(()),
                }
            }
            self.admit()?;
            self.decode()?;
            self.tell(port, false);
        }
    }

    /// Sends the answers, and before them how things stand, so that whoever has an answer finds it counted; without
    /// answers only before a wait and when nothing was said for long.
    fn tell(&mut self, port: &mut impl Port, idle: bool) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let spared = self.memory.spared();
        self.counts.shared_tokens = spared.shared_tokens;
        self.counts.forks = spared.forks;
        self.counts.rollbacks = spared.rollbacks;
        self.counts.evictions = spared.evictions;
        (self.counts.live, self.counts.queued) = (count(self.live.len()), count(self.queued.len()));
        let (when, what) = self.told;
        let is_news = (idle || !self.answers.is_empty()) && what != self.counts;
        if is_news || when.elapsed() > BEAT_EVERY {
            self.counts.decode_p99_us = self.pace.p99_us();
            self.told = (Instant::now(), self.counts);
            port.put(FromWorker::Counts(self.counts));
        }
        for (id, result) in self.answers.drain(..) {
            port.put(FromWorker::Done { id, result });
        }
        port.flush();
    }

    fn enqueue(&mut self, mut turn: Turn<'static>) {
        match &self.fault {
            Some(Fault::AbortOn(prompt)) if *prompt == turn.prompt => ffi::abort_on_purpose(),
            Some(Fault::HangOn(prompt)) if *prompt == turn.prompt => loop {
                std::thread::park();
            },
            _ => {}
        }
        match self.prepared(&mut turn) {
            Ok((prompt, grammar)) => self.queued.push(turn.group, Queued { turn, prompt, grammar }),
            Err(error) => self.answers.push((turn.id, Err(error))),
        }
    }

    fn prepared(&mut self, turn: &mut Turn<'static>) -> Result<(Vec<Token>, Option<Grammar>), EngineError> {
        let limit = self.turn_tokens_max;
        let text = chat::formatted(self.model, &turn.format, &turn.prompt)?;
        // Tokenizing takes time that grows with the text; what cannot fit is not worth it.
        let least = text.len() / self.token_bytes_max;
        let prompt: Vec<Token> = if least >= limit as usize {
            return Err(EngineError::PromptTooLong { tokens: u32::try_from(least).unwrap_or(u32::MAX), limit });
        } else {
            self.model.vocab().tokenize(text.as_bytes(), true, true).iter().map(|token| token.0).collect()
        };
        if prompt.is_empty() {
            let detail = "the prompt is empty and the model adds no token to it".to_owned();
            return Err(EngineError::BadRequest { detail });
        }
        let tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        // What the prompt leaves free is all that can be generated, whatever was asked for.
        turn.max_tokens = turn.max_tokens.min(limit.saturating_sub(tokens));
        if turn.max_tokens == 0 {
            return Err(EngineError::PromptTooLong { tokens, limit });
        }
        let grammar = turn.grammar.as_deref().map(|text| self.grammars.start(text, &self.tools.ends)).transpose()?;
        Ok((prompt, grammar))
    }

    /// Forgets a turn that nobody waits for any more.
    fn cancel(&mut self, id: TurnId) -> Result<(), Fatal> {
        let queued = self.queued.remove(|queued| queued.turn.id == id).len();
        let live = self.live.iter().position(|live| live.id() == id).map(|at| self.live.remove(at));
        self.counts.cancelled += queued as u64 + u64::from(live.is_some());
        live.map_or(Ok(()), |live| self.release(live.seq(), true))
    }

    /// Gives sequences to queued turns, the groups one after another, while sequences and cells last.
    fn admit(&mut self) -> Result<(), Fatal> {
        while !self.queued.is_empty() && !self.memory.is_full() {
            let (memory, live, changes) = (&mut self.memory, &self.live, &mut self.changes);
            let mut placed = None;
            let queued = self.queued.take(|queued| {
                if is_followed(live, memory, &queued.prompt) {
                    return Look::Later;
                }
                // The last token is chosen but never decoded, so this is one more than needed.
                placed = memory.place(&queued.prompt, queued.turn.max_tokens as usize, changes);
                // Nobody goes before a turn that waits for room, or it might wait for ever.
                if placed.is_some() { Look::Take } else { Look::Stop }
            });
            self.carry_out()?;
            let (Some(Queued { turn, prompt, grammar }), Some(placed)) = (queued, placed) else { break };
            self.counts.prompt_tokens += prompt.len() as u64;
            let live = Live::new(&turn, placed, prompt, grammar, &self.tools);
            if let Some(finish) = live.is_over() {
                self.finish(live, Ok(finish))?;
            } else {
                let at = self.live.partition_point(|other| other.seq() < live.seq());
                self.live.insert(at, live);
            }
        }
        Ok(())
    }

    /// Carries out what the bookkeeping asks for.
    fn carry_out(&mut self) -> Result<(), Fatal> {
        for change in self.changes.drain(..) {
            let done = match change {
                Change::Cut { seq, from } => {
                    let seq = Some(seq.raw().unsigned_abs());
                    self.context.clear_kv_cache_seq(seq, Some(from), None).map_err(|error| error.to_string())
                }
                Change::Copy { from, to, end } => self
                    .context
                    .copy_kv_cache_seq(from.raw(), to.raw(), None, end)
                    .map(|()| true)
                    .map_err(|error| error.to_string()),
            };
            match done {
                Ok(true) => {}
                Ok(false) => return Err(Fatal(format!("{change:?} is more than the KV pool can do"))),
                Err(reason) => return Err(Fatal(format!("{change:?} failed: {reason}"))),
            }
        }
        Ok(())
    }

    /// Decodes once.
    fn decode(&mut self) -> Result<(), Fatal> {
        if self.live.is_empty() {
            return Ok(());
        }
        self.fill_batch();
        self.memory.drop_stale(self.batch.n_tokens().unsigned_abs() as usize, &mut self.changes);
        self.carry_out()?;
        let started = Instant::now();
        match self.context.decode(&mut self.batch) {
            Ok(()) => {}
            Err(DecodeError::NoKvCacheSlot) => {
                // The pool is as before the decode: let the newest turn go and try again with the others.
                if let Some(at) = (0..self.live.len()).max_by_key(|at| self.live[*at].id()) {
                    let newest = self.live.remove(at);
                    self.finish(newest, Err(EngineError::Overflow))?;
                }
                return Ok(());
            }
            // -1 means a batch that we built wrongly, anything else a backend that failed: both are the end.
            Err(error) => return Err(Fatal(format!("decode failed: {error}: {}", ffi::take_logs()))),
        }
        self.pace.record(started.elapsed());
        self.counts.decodes += 1;
        self.counts.decoded_tokens += u64::from(self.batch.n_tokens().unsigned_abs());
        let mut at = 0;
        while let Some(live) = self.live.get_mut(at) {
            self.memory.computed(live.seq(), live.batched());
            match live.decoded(&self.context, &mut self.tools) {
                Step::Continue => at += 1,
                Step::Finish(result) => {
                    let over = self.live.remove(at);
                    self.finish(over, result)?;
                }
            }
        }
        Ok(())
    }

    /// What each turn needs for its next choice, and prompts.
    fn fill_batch(&mut self) {
        self.batch.clear();
        let turns: Vec<_> = self.live.iter().map(|live| (live.pending(), live.is_filling())).collect();
        let counts = share::shares(self.batch_tokens, self.prefill_tokens, &turns);
        for (live, count) in self.live.iter_mut().zip(counts) {
            live.add(&mut self.batch, count);
        }
    }

    fn finish(&mut self, over: Live, result: Result<Finish, EngineError>) -> Result<(), Fatal> {
        let (id, seq, forced) = (over.id(), over.seq(), over.forced());
        // A pool that was full, or a model that wrote nonsense, is nothing to build on.
        let is_sound = result.is_ok();
        let result = over.end(result, self.model);
        if let Ok(generation) = &result {
            self.counts.generated_tokens += generation.tokens.len() as u64;
            self.counts.forced_tokens += forced as u64;
        }
        self.answers.push((id, result));
        self.release(seq, is_sound)
    }

    fn release(&mut self, seq: Seq, is_sound: bool) -> Result<(), Fatal> {
        self.memory.release(seq, is_sound, &mut self.changes);
        self.carry_out()
    }
}

/// Whether a live turn is computing more of what `prompt` begins with than is there: then waiting for it costs nothing.
fn is_followed(live: &[Live], memory: &Memory, prompt: &[Token]) -> bool {
    let mut filling = live.iter().filter(|live| live.is_filling()).peekable();
    if filling.peek().is_none() {
        return false;
    }
    let there = memory.there(prompt);
    let wanted = &prompt[..prompt.len() - 1];
    filling.any(|live| common(live.planned(), wanted) >= there + FOLLOWED_MIN)
}

/// Bytes of the longest token, at least 1.
fn longest_token(model: &LlamaModel) -> usize {
    let vocabulary = model.vocab();
    let mut piece = Vec::new();
    let lengths = (0..vocabulary.n_tokens()).map(|token| {
        piece.clear();
        vocabulary.token_to_piece_into(LlamaToken(token), &mut piece, true, None);
        piece.len()
    });
    lengths.max().unwrap_or(1).max(1)
}
