//! What the agents of the configuration need: engines and their adapters, pools, programs.

use std::collections::{BTreeMap, BTreeSet};

use super::agents::{CoordinatorAgent, ExecutorAgent, VerifierAgent};
use super::program::Program;
use super::resolve::{Agent, RoleOptions};
use super::sections::Settings;
use prime_protocol::Role;

impl Settings {
    /// The engines of the configured agents, of those of presets, of the alternative of
    /// `agents.split`, and of the definitions that a request may choose.
    #[must_use]
    pub fn engines_needed(&self) -> Vec<String> {
        // A set, so that an engine that several agents share is started once.
        let mut engines = BTreeSet::new();
        self.visit_ready::<ExecutorAgent>(&mut |_, agent| {
            engines.extend(agent.engines().iter().cloned());
        });
        self.visit_ready::<VerifierAgent>(&mut |_, agent| {
            engines.extend(agent.engines().iter().cloned());
        });
        self.visit_ready::<CoordinatorAgent>(&mut |_, agent| {
            engines.extend(agent.engines().iter().cloned());
        });
        engines.into_iter().collect()
    }

    /// The adapters that agents apply to each of [`Settings::engines_needed`], with their scales;
    /// `None` where an agent asks the model itself. The first of an engine is opened with it.
    #[must_use]
    pub fn adapters_needed(&self) -> BTreeMap<String, Vec<Option<(String, f64)>>> {
        fn add<A: RoleOptions>(
            all: &mut BTreeMap<String, Vec<Option<(String, f64)>>>,
            agent: &Agent<A>,
        ) {
            let Some(adapters) = agent.adapters() else { return };
            for engine in agent.engines() {
                let needed = all.entry(engine.clone()).or_default();
                for adapter in adapters.all() {
                    let adapter = adapter.map(|path| (path.to_owned(), adapters.scale));
                    if !needed.contains(&adapter) {
                        needed.push(adapter);
                    }
                }
            }
        }
        let mut all = BTreeMap::new();
        self.visit_ready::<ExecutorAgent>(&mut |_, agent| add(&mut all, agent));
        self.visit_ready::<VerifierAgent>(&mut |_, agent| add(&mut all, agent));
        self.visit_ready::<CoordinatorAgent>(&mut |_, agent| add(&mut all, agent));
        all
    }

    /// The engines among [`Settings::engines_needed`] whose model's chat template some agent
    /// applies.
    #[must_use]
    pub fn chat_engines(&self) -> BTreeSet<String> {
        fn add<A: RoleOptions>(engines: &mut BTreeSet<String>, agent: &Agent<A>) {
            if agent.options.has_chat_template() {
                engines.extend(agent.engines().iter().cloned());
            }
        }
        let mut engines = BTreeSet::new();
        self.visit_ready::<ExecutorAgent>(&mut |_, agent| add(&mut engines, agent));
        self.visit_ready::<VerifierAgent>(&mut |_, agent| add(&mut engines, agent));
        self.visit_ready::<CoordinatorAgent>(&mut |_, agent| add(&mut engines, agent));
        engines
    }

    /// The pools of the configured agents, of those of presets, and of the alternative of
    /// `agents.split`.
    #[must_use]
    pub fn pools_needed(&self) -> Vec<String> {
        let mut pools = BTreeSet::new();
        self.visit_preconfigured::<ExecutorAgent>(&mut |_, agent| {
            pools.extend(agent.pool().map(str::to_owned));
        });
        self.visit_preconfigured::<VerifierAgent>(&mut |_, agent| {
            pools.extend(agent.pool().map(str::to_owned));
        });
        self.visit_preconfigured::<CoordinatorAgent>(&mut |_, agent| {
            pools.extend(agent.pool().map(str::to_owned));
        });
        pools.into_iter().collect()
    }

    /// The programs of the configured agents, of those of presets, and of the alternative of
    /// `agents.split`, by role and name.
    #[must_use]
    pub fn programs_needed(&self) -> BTreeMap<(Role, String), Program> {
        let mut programs = BTreeMap::new();
        let mut add = |role, name: &str, program: Option<&Program>| {
            programs.extend(program.map(|program| ((role, name.to_owned()), program.clone())));
        };
        self.visit_preconfigured::<ExecutorAgent>(&mut |name, agent| {
            add(Role::Executor, name, agent.program());
        });
        self.visit_preconfigured::<VerifierAgent>(&mut |name, agent| {
            add(Role::Verifier, name, agent.program());
        });
        self.visit_preconfigured::<CoordinatorAgent>(&mut |name, agent| {
            add(Role::Coordinator, name, agent.program());
        });
        programs
    }
}
