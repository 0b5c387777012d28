//! The agents that a run was accepted with. While this process cannot build them, the run waits: it
//! is never executed by others.

use std::sync::Arc;

use super::Execution;
use super::rows::open_row;
use crate::app::App;
use crate::runs::live::live_run::LiveRun;
use crate::runs::record::Status;
use prime_agent_set::AgentSet;

impl Execution {
    /// The run's agents, and the process state that they are from. Waits for a reload that brings
    /// them back; `None` if the run is cancelled first.
    pub(super) async fn agents_of(&self, live: &Arc<LiveRun>) -> Option<(Arc<App>, Arc<AgentSet>)> {
        let mut replacements = self.app.replacements();
        loop {
            // This comes before the search, so that a reload during it is not missed.
            replacements.mark_unchanged();
            let app = self.app();
            match find(&app, live).await {
                Ok(agents) => {
                    if live.set_waiting_for(None) {
                        tracing::info!(run = %live.stream.id, "the run's agents are back");
                    }
                    return Some((app, agents));
                }
                Err(missing) => {
                    if live.set_waiting_for(Some(missing.clone())) {
                        tracing::warn!(run = %live.stream.id, %missing, "a run waits for an agent that it was accepted with");
                        let row = open_row(live, Status::Queued, self.store.now_ms());
                        drop(live.stream.update(row));
                    }
                }
            }

            // The old configuration must not be kept while the run waits for a new one.
            drop(app);
            tokio::select! {
                biased;
                () = live.cancelled() => return None,
                replaced = replacements.changed() => replaced.ok()?,
            }
        }
    }
}

/// The run's agents in this process.
///
/// # Errors
/// Which agent is missing, and what to do.
async fn find(app: &Arc<App>, live: &LiveRun) -> Result<Arc<AgentSet>, String> {
    let spec = &live.spec;
    let Some(record) = &spec.recorded else {
        return app.agents_named(&spec.agents).map_err(|error| error.to_string());
    };
    if let Some(known) = app.known_agents(record, &spec.task) {
        return known.map_err(|missing| missing.to_string());
    }

    let (app, record, task) = (Arc::clone(app), Arc::clone(record), spec.task.clone());
    let system = actix::System::current();
    // A model may have to be loaded.
    let built = tokio::task::spawn_blocking(move || {
        // Agents are actors.
        actix::System::set_current(system);
        app.recorded_agents(&record, &task)
    });
    let built =
        built.await.map_err(|_| "the agents cannot be built: a constructor panicked".to_owned())?;
    built.map_err(|missing| missing.to_string())
}
