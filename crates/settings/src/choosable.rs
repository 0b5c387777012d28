//! The agents that a request may choose by name, and the models that agents ask.

use super::engine_names::first_that_knows;
use super::resolve::{Agent, RoleOptions};
use super::sections::{Server, Settings};
use prime_protocol::Role;

impl Server {
    /// The key that lists the agents of a role that requests may choose, and its value.
    #[must_use]
    pub fn allowed(&self, role: Role) -> (&'static str, &[String]) {
        match role {
            Role::Executor => ("server.allow_executors", &self.allow_executors),
            Role::Verifier => ("server.allow_verifiers", &self.allow_verifiers),
            Role::Coordinator => ("server.allow_coordinators", &self.allow_coordinators),
        }
    }
}

impl Settings {
    /// Visits the agents of a role whose engines run: those that runs can have without choosing
    /// one, and the definitions that a request may choose. An implementation that it may choose
    /// starts none, because the lists name some by default.
    pub(super) fn visit_ready<A: RoleOptions>(&self, visit: &mut dyn FnMut(&str, &Agent<A>)) {
        self.visit_preconfigured::<A>(visit);

        let (_, allowed) = self.server.allowed(A::ROLE);
        let definitions = A::defined(&self.definitions);
        for name in allowed.iter().filter(|name| definitions.contains_key(*name)) {
            self.walk::<A>(name, visit);
        }
    }

    /// The models that an agent and its members ask, in the order in which they are configured: the
    /// names of engines' files without their ending, and those that servers know. With a task, only
    /// the engine that is asked about it counts.
    #[must_use]
    pub fn models_of<A: RoleOptions>(&self, name: &str, task: Option<&str>) -> Vec<String> {
        let mut models: Vec<String> = Vec::new();
        let mut add = |model: String| {
            if !models.contains(&model) {
                models.push(model);
            }
        };
        self.walk::<A>(name, &mut |_, agent| {
            let engines = agent.engines().iter().filter_map(|engine| self.engines.get(engine));
            let mut engines: Vec<_> = engines.collect();
            if let Some(task) = task {
                let asked = first_that_knows(&engines, |engine| engine.has_learnt(task)).copied();
                engines = asked.into_iter().collect();
            }
            for engine in engines {
                let file = engine.model.file_stem().unwrap_or(engine.model.as_os_str());
                add(file.to_string_lossy().into_owned());
            }
            let pool = agent.pool().and_then(|pool| self.pools.get(pool));
            for server in pool.into_iter().flat_map(|pool| &pool.upstreams) {
                add(server.model.clone());
            }
        });
        models
    }
}
