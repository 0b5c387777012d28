//! The server pools of a process, by name: opened on first use and shared by all agents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::upstream::{OpenAiModel, PoolError, Probed, UpstreamStatus};
use prime_settings::{Settings, UpstreamPool};

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Why a named pool cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration has no such pool.
    #[error("there is no pool `{name}` (section `pools`)")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The pool is configured, but cannot be opened.
    #[error("pool `{name}`: {cause}")]
    Unusable {
        /// Name of the pool.
        name: String,
        /// Why it cannot be opened.
        cause: PoolError,
    },
}

/// An open pool none of whose servers answers a probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pool `{name}`: no server answers: {reasons}")]
pub struct NoServerAnswers {
    /// Name of the pool.
    pub name: String,
    /// What is wrong with each server.
    pub reasons: String,
}

/// Returns whether two pools answer alike. What their tokens cost is the concern of those who ask.
fn is_same_but_price(one: &UpstreamPool, other: &UpstreamPool) -> bool {
    UpstreamPool { price: other.price, ..one.clone() } == *other
}

/// Open pools with the options that they were opened with.
type OpenPools = BTreeMap<String, (UpstreamPool, Arc<OpenAiModel>)>;

/// The open pools of a process. Clones share them.
#[derive(Clone, Default)]
pub struct Pools(Arc<Mutex<OpenPools>>);

impl Pools {
    /// The pool of this name. If its options have changed, a new pool is opened; agents that use
    /// the old one keep it. Under the dialect `auto`, a pool whose servers did not say what they
    /// are is opened again, which waits for them.
    ///
    /// # Errors
    /// The pool cannot be opened, for example because an API key is not in the environment.
    pub fn get(
        &self,
        name: &str,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Arc<OpenAiModel>, OpenError> {
        let options =
            settings.pools.get(name).ok_or_else(|| OpenError::Unknown { name: name.to_owned() })?;

        // Held while a pool is opened, so that two agents never open the same one twice.
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, model)) = open.get(name)
            && is_same_but_price(known, options)
            && !model.is_unknown()
        {
            return Ok(Arc::clone(model));
        }

        let model = OpenAiModel::new(options, |variable| environment(variable));
        let model = model.map_err(|cause| OpenError::Unusable { name: name.to_owned(), cause })?;
        let model = Arc::new(model);
        open.insert(name.to_owned(), (options.clone(), Arc::clone(&model)));
        Ok(model)
    }

    /// Checks that each open pool has a server that answers.
    ///
    /// # Errors
    /// The first pool without one.
    pub async fn check(&self) -> Result<(), NoServerAnswers> {
        // Copied out of the lock, which must not be held across an await.
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
            return Err(NoServerAnswers { name, reasons: reasons.join("; ") });
        }
        Ok(())
    }

    /// The states of the open pools' servers, by pool.
    pub fn snapshot(&self) -> Vec<(String, Vec<UpstreamStatus>)> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(name, (_, model))| (name.clone(), model.snapshot())).collect()
    }
}
