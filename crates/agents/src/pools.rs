//! The server pools of a process, by name: opened on first use and shared by all agents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::upstream::{OpenAiModel, Probed, UpstreamStatus};
use prime_settings::{Settings, UpstreamPool};

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Open pools with the options that they were opened with.
type OpenPools = BTreeMap<String, (UpstreamPool, Arc<OpenAiModel>)>;

/// Clones share the pools.
#[derive(Clone, Default)]
pub struct Pools(Arc<Mutex<OpenPools>>);

impl Pools {
    /// The pool of this name. If its options have changed, a new pool is opened; agents that use
    /// the old one keep it.
    ///
    /// # Errors
    /// The pool cannot be opened, for example because an API key is not in the environment.
    pub fn get(
        &self,
        name: &str,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Arc<OpenAiModel>, String> {
        let options = settings
            .pools
            .get(name)
            .ok_or_else(|| format!("there is no pool `{name}` (section `pools`)"))?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, model)) = open.get(name)
            && known == options
        {
            return Ok(Arc::clone(model));
        }
        let model = OpenAiModel::new(options, |variable| environment(variable));
        let model = Arc::new(model.map_err(|error| format!("pool `{name}`: {error}"))?);
        open.insert(name.to_owned(), (options.clone(), Arc::clone(&model)));
        Ok(model)
    }

    /// Checks that each open pool has a server that answers.
    ///
    /// # Errors
    /// The first pool without one, with what is wrong with its servers.
    pub async fn check(&self) -> Result<(), String> {
        let open: Vec<_> = {
            let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            open.iter().map(|(name, (_, model))| (name.clone(), Arc::clone(model))).collect()
        };
        for (name, model) in open {
            let probed = model.probe().await;
            if probed.iter().any(|server| server.answer.is_ok()) {
                continue;
            }
            let reason = |server: &Probed| {
                Some(format!("{}: {}", server.server, server.answer.as_ref().err()?))
            };
            let reasons: Vec<_> = probed.iter().filter_map(reason).collect();
            return Err(format!("pool `{name}`: no server answers: {}", reasons.join("; ")));
        }
        Ok(())
    }

    /// The states of the open pools' servers, by pool.
    pub fn snapshot(&self) -> Vec<(String, Vec<UpstreamStatus>)> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(name, (_, model))| (name.clone(), model.snapshot())).collect()
    }
}
