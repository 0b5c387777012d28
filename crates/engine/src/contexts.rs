//! The contexts of a worker: one set of weights, and for each context its KV cache, its adapters
//! and its turns.
//!
//! The contexts take turns on one thread, a decode each: on a CPU they would only compete for its
//! cores.

use std::rc::Rc;

use super::batching::{Batcher, Fatal};
use super::ffi::LoadedAdapter;
use super::model::Loaded;
use super::spec::Fault;
use super::transport::{Received, Transport};
use super::wire::{ContextId, Facts, FromWorker, ToWorker};
use super::{Adapter, EngineError, EngineSpec, Speculation, context_cache, model};

/// Loads the model, and serves contexts and their turns until the transport closes.
pub(super) fn serve(
    spec: &EngineSpec,
    fault: Option<Fault>,
    transport: &mut impl Transport,
) -> Result<(), Fatal> {
    let loaded = model::fitted(spec)
        .and_then(|(fitted, chosen)| Ok((model::load(&fitted)?, fitted, chosen)));
    match loaded {
        Ok((loaded, fitted, chosen)) => {
            let (loaded, open) = (&loaded, Vec::new());
            Contexts { spec, fitted, chosen, loaded, fault, open, has_opened: false }.run(transport)
        }
        Err(error) => {
            transport.send(FromWorker::Refused { context: None, error });
            transport.flush();
            Ok(())
        }
    }
}

struct Contexts<'m> {
    /// The spec as it was requested.
    spec: &'m EngineSpec,
    /// The spec with the engine's choices in place of what it left open.
    fitted: EngineSpec,
    /// These choices, in words.
    chosen: Option<String>,
    loaded: &'m Loaded,
    fault: Option<Fault>,
    open: Vec<(ContextId, Batcher<'m>)>,
    /// True if a context was made: memory for the first was checked when the model was loaded.
    has_opened: bool,
}

impl<'m> Contexts<'m> {
    fn run(&mut self, transport: &mut impl Transport) -> Result<(), Fatal> {
        loop {
            // Takes every frame that has arrived, so that turns that arrive together share a
            // decode.
            loop {
                let idle = self.open.iter().all(|(_, batcher)| batcher.is_idle());
                if idle {
                    // Turns that were refused leave answers too.
                    self.open.iter_mut().for_each(|(_, batcher)| batcher.report(transport, true));
                }

                match transport.recv(idle) {
                    Received::Frame(ToWorker::Open { context, spec }) => {
                        self.open(context, &spec, transport);
                    }
                    Received::Frame(ToWorker::Close(context)) => {
                        self.open.retain(|(id, _)| *id != context);
                    }
                    Received::Frame(ToWorker::Turn(turn)) => {
                        let place = self.open.iter_mut().find(|(id, _)| *id == turn.context);
                        // A context that was closed meanwhile owes no answers.
                        if let Some((_, batcher)) = place {
                            batcher.enqueue(turn);
                        }
                    }
                    Received::Frame(ToWorker::Cancel(id)) => {
                        for (_, batcher) in &mut self.open {
                            batcher.cancel(id)?;
                        }
                    }
                    Received::Frame(ToWorker::Start { .. }) => {
                        return Err(Fatal("started twice".to_owned()));
                    }
                    Received::Empty => break,
                    Received::Closed => return Ok(()),
                }
            }

            for (_, batcher) in self.open.iter_mut().filter(|(_, batcher)| !batcher.is_idle()) {
                batcher.step(transport)?;
            }
        }
    }

    /// Makes a context, and reports the outcome.
    fn open(&mut self, id: ContextId, spec: &EngineSpec, transport: &mut impl Transport) {
        let frame = match self.batcher(id, spec) {
            Ok((batcher, facts)) => {
                self.open.push((id, batcher));
                FromWorker::Ready { context: id, facts }
            }
            Err(error) => FromWorker::Refused { context: Some(id), error },
        };
        transport.send(frame);
        transport.flush();
    }

    fn batcher(
        &mut self,
        id: ContextId,
        spec: &EngineSpec,
    ) -> Result<(Batcher<'m>, Facts), EngineError> {
        let spec = &self.fitted(spec);
        if self.has_opened {
            model::check_context(spec, &self.loaded.header)?;
        }

        // Adapters come first: llama.cpp sizes a context's graphs by those that are loaded.
        let adapters = spec.adapters.iter().map(|adapter| {
            adapter.check(&self.spec.model, &self.loaded.header)?;
            Ok((adapter.clone(), self.adapter(adapter)?))
        });
        let adapters = adapters.collect::<Result<Vec<_>, EngineError>>()?;

        let mut context = model::context(self.loaded, spec)?;
        self.has_opened = true;
        for (adapter, loaded) in &adapters {
            loaded.apply(&mut context, adapter.scale.into()).map_err(|detail| {
                EngineError::AdapterForeign {
                    path: adapter.path.clone(),
                    model: self.spec.model.clone(),
                    detail,
                }
            })?;
        }

        let mut batcher =
            Batcher::new(id, context, adapters, self.loaded, spec, self.fault.clone());
        batcher.warm_up()?;
        let unsaved = context_cache::unsaved(&self.loaded.header, spec);
        let undrafted = context_cache::undrafted(&self.loaded.model, &self.loaded.header)
            .filter(|_| spec.speculation == Speculation::Ngram)
            .map(|reason| format!("speculation = \"ngram\" has no effect: {reason}"));
        let notes = self.chosen.clone().into_iter().chain(unsaved).chain(undrafted).collect();
        let facts = batcher.facts(self.loaded, notes);
        Ok((batcher, facts))
    }

    /// The spec of a context on the weights as they were loaded, with as much context as fits where
    /// it asks for as much as the weights were loaded with.
    fn fitted(&self, spec: &EngineSpec) -> EngineSpec {
        let EngineSpec { gpu_layers, cpu_experts, context_tokens, .. } = self.fitted;
        let is_same = spec.context_tokens == self.spec.context_tokens && spec.fit == self.spec.fit;
        EngineSpec {
            gpu_layers,
            cpu_experts,
            context_tokens: if is_same { context_tokens } else { spec.context_tokens },
            ..spec.clone()
        }
    }

    /// The adapter as another context has loaded it, or loaded now.
    fn adapter(&self, adapter: &Adapter) -> Result<Rc<LoadedAdapter<'m>>, EngineError> {
        let is_same = |other: &Adapter| {
            adapter.digest.is_some()
                && (&other.path, &other.digest) == (&adapter.path, &adapter.digest)
        };
        let all = self.open.iter().flat_map(|(_, batcher)| batcher.adapters());
        if let Some((_, loaded)) = all.into_iter().find(|(other, _)| is_same(other)) {
            return Ok(Rc::clone(loaded));
        }

        let loaded = LoadedAdapter::load(&self.loaded.model, &adapter.path);
        Ok(Rc::new(loaded.map_err(|detail| EngineError::AdapterForeign {
            path: adapter.path.clone(),
            model: self.spec.model.clone(),
            detail,
        })?))
    }
}
