//! What the executor of a recorded run asked its model: the prompts follow from the run's templates
//! and its state, so a journal need not keep them.

use std::collections::BTreeMap;

use super::{AgentMissing, RecordedAgents, RecordedPool};
use crate::AgentError;
use crate::llm::{Asked, ExecutorPrompts, from_settings};
use prime_protocol::{Role, Trajectory};
use prime_settings::{ExecutorAgent, Settings, UpstreamPool};

/// The prompts of a run's executors that ask a model, by name.
pub struct RecordedPrompts {
    executor: String,
    by_name: BTreeMap<String, ExecutorPrompts>,
}

impl RecordedAgents {
    /// The prompts of the recorded executor and its members.
    ///
    /// # Errors
    /// This version cannot read the record, or a template in it.
    pub fn executor_prompts(&self) -> Result<RecordedPrompts, AgentMissing> {
        // The record says everything that prompts depend on. What this process is configured with,
        // and the definitions in its working directory, must play no part.
        let mut settings = self.settings_in(&Settings::built_in())?;
        for (name, RecordedPool { api, dialect, extra, .. }) in &self.pools {
            let extra = extra.clone();
            let pool =
                UpstreamPool { api: *api, dialect: *dialect, extra, ..UpstreamPool::default() };
            settings.pools.insert(name.clone(), pool);
        }

        let unusable = |error: crate::prompt::TemplateError| AgentMissing::Agent {
            role: Role::Executor,
            name: self.executor.name.clone(),
            reason: error.to_string(),
        };
        let templates = from_settings::templates(&settings).map_err(unusable)?;

        let mut by_name = BTreeMap::new();
        let mut failure = None;
        settings.walk_configured::<ExecutorAgent>(&mut |name, agent| {
            // The agent asks no model.
            if agent.templates().is_empty() {
                return;
            }
            match from_settings::executor_prompts(&settings, &templates, name, agent) {
                Ok(prompts) => drop(by_name.insert(name.to_owned(), prompts)),
                Err(error) => drop(failure.get_or_insert(unusable(error))),
            }
        });

        failure.map_or(Ok(RecordedPrompts { executor: self.executor.name.clone(), by_name }), Err)
    }
}

impl RecordedPrompts {
    /// What was asked for the trajectory's next step, given the source that its proposal carries;
    /// `None` if no model was asked.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub fn of(
        &self,
        source: Option<&str>,
        trajectory: &Trajectory,
    ) -> Result<Option<Asked>, AgentError> {
        // The source is an executor where one of several was asked; otherwise it is a server.
        let by_source = source.and_then(|source| self.by_name.get(source));
        by_source
            .or_else(|| self.by_name.get(&self.executor))
            .map(|prompts| prompts.of(trajectory))
            .transpose()
    }
}
