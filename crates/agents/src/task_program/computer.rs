//! What computes a task: the processes of a program, or a WebAssembly module.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::module::ModulePool;
use crate::process::ProcessPool;
use crate::{AgentError, Failure};

/// The number of every request to a module: it keeps nothing, so that no number tells one answer
/// from another.
const MODULE_REQUEST: u64 = 1;

#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

/// Clones share the processes or threads.
#[derive(Clone)]
pub(super) enum Computer {
    Program(Arc<ProcessPool>),
    Module(Arc<ModulePool>),
}

impl Computer {
    /// The answer to a request of this owner that is built with an id.
    ///
    /// # Errors
    /// There is no answer: the program or the module fails, takes too long, or writes too much.
    pub async fn ask(
        &self,
        owner: &Arc<str>,
        request: impl FnOnce(u64) -> Vec<u8> + Send,
    ) -> Result<Vec<u8>, AgentError> {
        match self {
            Self::Program(pool) => pool.ask_for(owner, request).await,
            Self::Module(pool) => {
                let answer = pool.ask(owner, request(MODULE_REQUEST)).await?;
                // Text that is not an answer is reported where it is read.
                match serde_json::from_slice(&answer) {
                    Ok(Numbered { id }) if id != MODULE_REQUEST => {
                        let reason = format!("it answered request {id}, not {MODULE_REQUEST}");
                        Err(AgentError {
                            is_transient: false,
                            ..pool.error(Failure::Malformed, reason)
                        })
                    }
                    _ => Ok(answer),
                }
            }
        }
    }

    /// True if a client uploaded it; its limits are then lower.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Module(pool) if pool.is_foreign())
    }

    /// Waits until it has declared its task.
    ///
    /// # Errors
    /// Why it cannot be started, or did not answer.
    pub async fn ready(&self) -> Result<(), AgentError> {
        match self {
            Self::Program(pool) => pool.ready().await,
            Self::Module(_) => Ok(()),
        }
    }

    /// What it declares of its task, once it is [`Computer::ready`].
    pub fn declared(&self) -> Option<&Value> {
        match self {
            Self::Program(pool) => pool.declared(),
            Self::Module(pool) => Some(pool.declared()),
        }
    }

    pub fn error(&self, failure: Failure, reason: impl Into<String>) -> AgentError {
        match self {
            Self::Program(pool) => pool.error(failure, reason),
            Self::Module(pool) => pool.error(failure, reason),
        }
    }
}
