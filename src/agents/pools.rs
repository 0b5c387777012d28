//! The pools of servers of a process, by name: opened when an agent first asks for one, and shared by all that do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::registry::Environment;
use super::upstream::{OpenAiModel, UpstreamStatus};
use crate::settings::{Settings, Upstreams};

/// An open pool with what it was opened from.
type Open = BTreeMap<String, (Upstreams, Arc<OpenAiModel>)>;

/// See the module. Clones share the pools.
#[derive(Clone, Default)]
pub struct Pools(Arc<Mutex<Open>>);

impl Pools {
    /// The pool of this name; one whose options have changed is opened anew, beside what still uses the old one.
    ///
    /// # Errors
    /// What keeps it from being opened, such as a key that is not in the environment.
    pub fn get(&self, name: &str, settings: &Settings, environment: &Environment) -> Result<Arc<OpenAiModel>, String> {
        let options = settings.pools.get(name).ok_or_else(|| format!("there is no pool `{name}` (section `pools`)"))?;
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

    /// How the servers of the open pools stand, by pool.
    pub fn snapshot(&self) -> Vec<(String, Vec<UpstreamStatus>)> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().map(|(name, (_, model))| (name.clone(), model.snapshot())).collect()
    }
}
