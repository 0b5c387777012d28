//! The configuration and agents in force, which a reload replaces.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::app::App;

/// The [`App`] of new runs, and of those that wait for their agents.
pub struct CurrentApp {
    app: RwLock<Arc<App>>,
    /// Counts the replacements.
    replaced: watch::Sender<u64>,
}

impl CurrentApp {
    pub fn new(app: Arc<App>) -> Self {
        Self { app: RwLock::new(app), replaced: watch::Sender::new(0) }
    }

    pub fn get(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn replace(&self, app: App) {
        *self.app.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(app);
        // This comes after the write, so that a run that it wakes finds the new agents.
        self.replaced.send_modify(|count| *count += 1);
    }

    /// Changes with each replacement.
    pub fn replacements(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }
}
