//! The loop that owns a context: continuous batching of all live sequences.
//!
//! Every decode carries the next token of each live sequence and, up to the batch's size, a slice of the prompts that
//! are not prefilled yet. Turns join between decodes and leave as soon as they are over. It knows nothing of processes
//! and sockets; whoever runs it gives it a [`Port`].
#![allow(clippy::disallowed_methods, reason = "the beat is for the watchdog, which measures real time")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::choice::Scratch;
use super::grammar::{Candidates, Grammars};
use super::live::{Live, Step};
use super::port::{Intake, Port};
use super::sequence::{SeqId, SeqIds};
use super::spec::Fault;
use super::wire::{Facts, FromWorker, ToWorker, Turn, TurnId};
use super::{EngineError, EngineSpec, Finish, KvPool, chat, ffi, model};

/// Longest silence towards the parent while decoding.
const BEAT_EVERY: Duration = Duration::from_millis(100);

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
    prompt: Vec<LlamaToken>,
}

struct Batcher<'m> {
    context: LlamaContext<'m>,
    model: &'m LlamaModel,
    fault: Option<Fault>,
    batch: LlamaBatch<'static>,
    batch_tokens: usize,
    /// Longest prompt plus generation.
    turn_tokens_max: u32,
    /// Cells of the KV pool that no live turn may still need.
    cells_free: u32,
    ids: SeqIds,
    queued: VecDeque<Queued>,
    /// In the order of their sequences: llama.cpp computes neighbours together, and others one after another if the
    /// KV pool is split.
    live: Vec<Live>,
    grammars: Grammars,
    candidates: Candidates,
    scratch: Scratch,
    heard: Instant,
}

impl<'m> Batcher<'m> {
    fn new(context: LlamaContext<'m>, model: &'m LlamaModel, spec: &EngineSpec, fault: Option<Fault>) -> Self {
        // llama.cpp clamps the batch to the context.
        let batch_tokens = context.n_batch() as usize;
        let sequence_tokens = match spec.kv {
            KvPool::Shared => context.n_ctx(),
            KvPool::Split => context.n_ctx() / u32::from(spec.sequences_max),
        };
        Self {
            batch: LlamaBatch::new(batch_tokens, 1),
            batch_tokens,
            turn_tokens_max: sequence_tokens.min(model.n_ctx_train()),
            cells_free: context.n_ctx(),
            ids: SeqIds::new(spec.sequences_max),
            queued: VecDeque::new(),
            live: Vec::new(),
            grammars: Grammars::default(),
            candidates: Candidates::new(usize::try_from(model.vocab().n_tokens()).unwrap_or(0)),
            scratch: Scratch::default(),
            heard: Instant::now(),
            context,
            model,
            fault,
        }
    }

    /// Readiness is a real decode of one token.
    fn warm_up(&mut self) -> Result<(), EngineError> {
        let id = self.ids.take().expect("invariant: at least one sequence");
        let begin = self.model.vocab().bos();
        let token = if (0..self.model.vocab().n_tokens()).contains(&begin.0) { begin } else { LlamaToken(0) };
        self.batch.clear();
        self.batch.add(token, 0, &[id.raw()], true).expect("invariant: a batch holds one token");
        self.context.decode(&mut self.batch).map_err(|error| EngineError::WorkerDied {
            detail: format!("the first decode failed: {error}: {}", ffi::take_logs()),
        })?;
        let finite = self.context.get_logits_ith(0).iter().all(|logit| logit.is_finite());
        self.release(id).map_err(|fatal| EngineError::WorkerDied { detail: fatal.to_string() })?;
        if finite { Ok(()) } else { Err(EngineError::NotFinite) }
    }

    fn run(&mut self, port: &mut impl Port) -> Result<(), Fatal> {
        loop {
            loop {
                let idle = self.live.is_empty() && self.queued.is_empty();
                if idle {
                    // A refusal may be all that there was to say before the wait.
                    port.flush();
                }
                match port.take(idle) {
                    Intake::Frame(ToWorker::Turn(turn)) => self.enqueue(turn, port),
                    Intake::Frame(ToWorker::Start { .. }) => return Err(Fatal("started twice".to_owned())),
                    Intake::Nothing => break,
                    Intake::Closed => return Ok(()),
                }
            }
            self.admit(port);
            if !self.live.is_empty() {
                self.decode(port)?;
                if self.heard.elapsed() > BEAT_EVERY {
                    self.heard = Instant::now();
                    port.put(FromWorker::Beat);
                }
            }
            port.flush();
        }
    }

    fn enqueue(&mut self, mut turn: Turn<'static>, port: &mut impl Port) {
        match &self.fault {
            Some(Fault::AbortOn(prompt)) if *prompt == turn.prompt => ffi::abort_on_purpose(),
            Some(Fault::HangOn(prompt)) if *prompt == turn.prompt => loop {
                std::thread::park();
            },
            _ => {}
        }
        let text = match chat::formatted(self.model, &turn.format, &turn.prompt) {
            Ok(text) => text,
            Err(error) => return port.put(FromWorker::Done { id: turn.id, result: Err(error) }),
        };
        let prompt = self.model.vocab().tokenize(text.as_bytes(), true, true);
        let (tokens, limit) = (u32::try_from(prompt.len()).unwrap_or(u32::MAX), self.turn_tokens_max);
        // What the prompt leaves free is all that can be generated, whatever was asked for.
        turn.max_tokens = turn.max_tokens.min(limit.saturating_sub(tokens));
        let result = if prompt.is_empty() {
            Err(EngineError::BadRequest { detail: "the prompt is empty and the model adds no token to it".to_owned() })
        } else if turn.max_tokens == 0 {
            Err(EngineError::PromptTooLong { tokens, limit })
        } else {
            Ok(())
        };
        match result {
            Ok(()) => self.queued.push_back(Queued { turn, prompt }),
            Err(error) => port.put(FromWorker::Done { id: turn.id, result: Err(error) }),
        }
    }

    /// Gives sequences to queued turns, first come first served, while sequences and cells last.
    fn admit(&mut self, port: &mut impl Port) {
        let mut admitted: Vec<TurnId> = Vec::new();
        while let Some(next) = self.queued.front() {
            // The last token is chosen but never decoded, so this is one more than needed.
            let cells = u32::try_from(next.prompt.len()).unwrap_or(u32::MAX).saturating_add(next.turn.max_tokens);
            if self.ids.is_empty() || cells > self.cells_free {
                break;
            }
            let Some(Queued { turn, prompt }) = self.queued.pop_front() else { break };
            let grammar = turn.grammar.as_deref().map(|text| self.grammars.start(self.model, text)).transpose();
            match grammar {
                Err(error) => port.put(FromWorker::Done { id: turn.id, result: Err(error) }),
                Ok(grammar) => {
                    let seq = self.ids.take().expect("invariant: not empty");
                    self.cells_free -= cells;
                    admitted.push(turn.id);
                    let at = self.live.partition_point(|live| live.seq() < seq.raw());
                    self.live.insert(at, Live::new(&turn, seq, cells, prompt, grammar));
                }
            }
        }
        if !admitted.is_empty() {
            self.heard = Instant::now();
            port.put(FromWorker::Admitted(admitted));
        }
    }

    fn decode(&mut self, port: &mut impl Port) -> Result<(), Fatal> {
        self.fill_batch();
        match self.context.decode(&mut self.batch) {
            Ok(()) => {}
            Err(DecodeError::NoKvCacheSlot) => {
                // The pool is as before the decode: let the newest turn go and try again with the others.
                if let Some(at) = (0..self.live.len()).max_by_key(|at| self.live[*at].id()) {
                    let newest = self.live.remove(at);
                    return self.finish(newest, Err(EngineError::Overflow), port);
                }
            }
            // -1 means a batch that we built wrongly, anything else a backend that failed: both are the end.
            Err(error) => return Err(Fatal(format!("decode failed: {error}: {}", ffi::take_logs()))),
        }
        let mut at = 0;
        while let Some(live) = self.live.get_mut(at) {
            let step = match live.decoded() {
                None => Step::Continue,
                Some(row) => {
                    let logits = self.context.get_logits_ith(row);
                    live.choose(logits, self.model, &mut self.candidates, &mut self.scratch)
                }
            };
            match step {
                Step::Continue => at += 1,
                Step::Finish(result) => {
                    let over = self.live.remove(at);
                    self.finish(over, result, port)?;
                }
            }
        }
        Ok(())
    }

    /// One token of each sequence that is generating, then prompts, the oldest turn first.
    fn fill_batch(&mut self) {
        self.batch.clear();
        let mut room = self.batch_tokens;
        // There is always room for the generating ones: the batch is at least as large as the number of sequences.
        for live in self.live.iter_mut().filter(|live| live.is_generating()) {
            room -= live.add_next(&mut self.batch);
        }
        let mut filling: Vec<&mut Live> = self.live.iter_mut().filter(|live| !live.is_generating()).collect();
        filling.sort_unstable_by_key(|live| live.id());
        for live in filling {
            room -= live.add_prompt(&mut self.batch, room);
        }
    }

    fn finish(&mut self, over: Live, result: Result<Finish, EngineError>, port: &mut impl Port) -> Result<(), Fatal> {
        let id = over.id();
        let cells = over.cells();
        let (seq, result) = over.end(result, self.model);
        self.release(seq)?;
        self.cells_free += cells;
        self.heard = Instant::now();
        port.put(FromWorker::Done { id, result });
        Ok(())
    }

    fn release(&mut self, seq: SeqId) -> Result<(), Fatal> {
        self.context
            .clear_kv_cache_seq(Some(seq.raw().unsigned_abs()), None, None)
            .map_err(|error| Fatal(format!("a sequence could not be removed: {error}")))?;
        self.ids.give_back(seq);
        Ok(())
    }
}
