//! From names in the configuration to agents. Each agent comes from a factory, because one that dies is replaced.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::llm::{EngineModel, ExecutorOptions, LlmExecutor};
use super::model::Model;
use super::prompt::Templates;
use super::reference::ReferenceExecutor;
use super::replay::ReplayExecutor;
use super::rules::RulesVerifier;
use super::scripted::ScriptedExecutor;
use super::threshold::ThresholdCoordinator;
use super::{Coordinator, Executor, Verifier};
use crate::engine::Engine;
use crate::protocol::{Score, Thresholds};
use crate::settings::Settings;
use crate::tasks::Kinds;

/// Which implementations a run used; part of every result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Names {
    pub executor: String,
    pub verifier: String,
    pub coordinator: String,
}

type Factory<A> = Box<dyn Fn() -> Arc<A> + Send + Sync>;

/// The three agents of every ring, as factories.
pub struct AgentSet {
    names: Names,
    kinds: Kinds,
    executor: Factory<dyn Executor>,
    verifier: Factory<dyn Verifier>,
    coordinator: Factory<dyn Coordinator>,
}

/// A configuration that names agents which cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("agents.{role}.implementation: there is no {name:?}")]
    Unknown { role: &'static str, name: String },
    #[error("agents.executor.implementation = \"replay\" needs lines to propose: set agents.executor.lines")]
    NoLines,
    #[error("agents.executor.implementation = \"llama\" needs an engine, and none was started")]
    NoEngine,
}

impl AgentSet {
    /// Agents made by these factories; for tests and for programs that bring their own.
    pub fn of(
        names: Names,
        kinds: Kinds,
        executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
        verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
        coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
    ) -> Self {
        Self {
            names,
            kinds,
            executor: Box::new(executor),
            verifier: Box::new(verifier),
            coordinator: Box::new(coordinator),
        }
    }

    /// The agents that the settings name; `engine` is the executor's, where it needs one.
    ///
    /// # Errors
    /// When a name is no implementation's, or `llama` is asked for without an engine.
    pub fn from_settings(settings: &Settings, engine: Option<Engine>) -> Result<Self, RegistryError> {
        let unknown = |role, name: &str| Err(RegistryError::Unknown { role, name: name.to_owned() });
        let agents = &settings.agents;
        let executor: Factory<dyn Executor> = match agents.executor.implementation.as_str() {
            "reference" => Box::new(|| Arc::new(ReferenceExecutor)),
            "scripted" => {
                let error_rate = agents.executor.error_rate;
                Box::new(move || Arc::new(ScriptedExecutor::new(error_rate)))
            }
            "replay" => {
                let lines = agents.executor.lines.clone();
                if lines.is_empty() {
                    return Err(RegistryError::NoLines);
                }
                Box::new(move || Arc::new(ReplayExecutor::new(lines.clone())))
            }
            "llama" => {
                let engine = engine.ok_or(RegistryError::NoEngine)?;
                let max_tokens = agents.executor.max_tokens;
                let options = ExecutorOptions::compact("llama", max_tokens);
                let templates = Templates::default();
                let model: Arc<dyn Model> = Arc::new(EngineModel::new(engine, false));
                Box::new(move || {
                    let executor = LlmExecutor::new(Arc::clone(&model), &templates, options.clone());
                    Arc::new(executor.expect("invariant: the built-in templates can be used, as a test shows"))
                })
            }
            name => return unknown("executor", name),
        };
        let kinds = match agents.verifier.implementation.as_str() {
            "rules" => agents.verifier.kinds.iter().copied().collect(),
            "none" => Kinds::NONE,
            name => return unknown("verifier", name),
        };
        let score = |tau| Score::from_value(tau).expect("invariant: settings are validated");
        let thresholds = Thresholds {
            soft: score(settings.run.tau_soft),
            hard: score(settings.run.tau_hard),
            retries_max: settings.run.retries_max,
        };
        if agents.coordinator.implementation != "threshold" {
            return unknown("coordinator", &agents.coordinator.implementation);
        }
        let names = Names {
            executor: agents.executor.implementation.clone(),
            verifier: agents.verifier.implementation.clone(),
            coordinator: agents.coordinator.implementation.clone(),
        };
        Ok(Self {
            names,
            kinds,
            executor,
            verifier: Box::new(move || Arc::new(RulesVerifier::new(kinds))),
            coordinator: Box::new(move || Arc::new(ThresholdCoordinator(thresholds))),
        })
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Whether the executor only follows a task's own algorithm, which a client's own problem does not have.
    pub fn needs_algorithm(&self) -> bool {
        ["reference", "scripted"].contains(&self.names.executor.as_str())
    }

    /// What the verifier checks; empty when nothing is.
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    pub fn executor(&self) -> Arc<dyn Executor> {
        (self.executor)()
    }

    pub fn verifier(&self) -> Arc<dyn Verifier> {
        (self.verifier)()
    }

    pub fn coordinator(&self) -> Arc<dyn Coordinator> {
        (self.coordinator)()
    }
}
