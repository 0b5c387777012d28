//! Executor `llama`: a model in an engine, asked with the compact step prompt and held to the task's grammar.

use std::sync::Arc;

use async_trait::async_trait;
use dashmap::DashMap;

use super::{AgentError, Executor, Failure, Proposal, Sampling, prompt};
use crate::engine::{Engine, EngineError, Request, Sampling as EngineSampling};
use crate::protocol::{Trajectory, Usage};

pub struct LlamaExecutor {
    engine: Engine,
    max_tokens: u32,
    /// Grammars by task, made once; the engine knows one it has seen by its text.
    grammars: DashMap<&'static str, Arc<str>>,
}

impl LlamaExecutor {
    pub fn new(engine: Engine, max_tokens: u32) -> Self {
        Self { engine, max_tokens, grammars: DashMap::new() }
    }
}

fn failure(error: &EngineError) -> AgentError {
    // The engine has sent the turn again itself where that can help.
    AgentError::new("executor `llama`", Failure::Engine, error.to_string())
}

#[async_trait]
impl Executor for LlamaExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let spec = trajectory.machine.spec();
        let grammar = self.grammars.entry(spec.slug).or_insert_with(|| prompt::grammar(spec).into()).clone();
        let request = Request {
            prompt: prompt::compact(trajectory.machine.as_ref()),
            grammar: Some(grammar),
            sampling: EngineSampling { temperature: sampling.temperature, top_p: sampling.top_p, seed: sampling.seed },
            max_tokens: self.max_tokens,
            logprobs: true,
        };
        let generation = self.engine.generate(request).await.map_err(|error| failure(&error))?;
        let line = prompt::action_line(&generation.text).to_owned();
        let derivation = generation.text.strip_suffix(&line).unwrap_or("").trim_end().to_owned();
        let usage = Usage { prompt: u64::from(generation.prompt_tokens), completion: generation.tokens.len() as u64 };
        Ok(Proposal { line, derivation, usage, tokens: generation.tokens, logprobs: generation.logprobs, source: None })
    }
}
