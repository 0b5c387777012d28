//! Resolves an agent's name to its options: an implementation with those of its role's section, or
//! a definition.

use std::collections::{BTreeMap, BTreeSet};

use config::Value;
use serde::Serialize;

use super::agents::{
    CoordinatorAgent, ExecutorAgent, Implementation, VerdictName, VerifierAgent, implementations,
};
use super::definitions::{Defined, Definitions};
use super::engine_names::first_that_knows;
use super::error::SettingsError;
use super::program::Program;
use super::sections::Settings;
use prime_bench::spelling::nearest;
use prime_protocol::Role;

/// The options of a role's agents.
pub trait RoleOptions: Clone + Serialize {
    const ROLE: Role;

    /// What it is for.
    fn description(&self) -> &str;
    fn implementation(&self) -> &str;
    fn set_implementation(&mut self, name: &str);
    /// Its engines, if its implementation uses some.
    fn engines(&self) -> &[String];
    /// Its pool, if its implementation uses one.
    fn pool(&self) -> Option<&str>;
    /// Its program, if its implementation runs one.
    fn program(&self) -> Option<&Program>;
    /// Names of the agents of the same role that it is composed of.
    fn members(&self) -> Vec<&str>;
    /// Its prompt templates as `role/file`, if its implementation asks a model.
    fn templates(&self) -> Vec<String>;
    /// The role's section.
    fn section(settings: &Settings) -> &Self;
    fn defined(definitions: &Definitions) -> &BTreeMap<String, Defined<Self>>;
}

macro_rules! role_options {
    ($($options:ident, $role:ident, $field:ident, $all:ident, [$($composite:pat => $members:expr),*];)*) => { $(
        impl RoleOptions for $options {
            const ROLE: Role = Role::$role;

            fn description(&self) -> &str {
                &self.description
            }

            fn implementation(&self) -> &str {
                &self.implementation
            }

            fn set_implementation(&mut self, name: &str) {
                name.clone_into(&mut self.implementation);
            }

            fn engines(&self) -> &[String] {
                if self.implementation == "llama" { self.engine.all() } else { &[] }
            }

            fn pool(&self) -> Option<&str> {
                (self.implementation == "openai").then_some(self.pool.as_str())
            }

            fn program(&self) -> Option<&Program> {
                (self.implementation == "process").then_some(&self.program)
            }

            fn members(&self) -> Vec<&str> {
                match self.implementation.as_str() {
                    $($composite => {
                        let members: fn(&Self) -> Vec<&str> = $members;
                        members(self)
                    })*
                    _ => Vec::new(),
                }
            }

            fn templates(&self) -> Vec<String> {
                if !ASKS_A_MODEL.contains(&self.implementation.as_str()) {
                    return Vec::new();
                }
                let names = self.prompt_names().into_iter().chain([self.system.as_str()]);
                names.filter(|name| !name.is_empty()).map(|name| format!("{}/{name}.j2", Self::ROLE)).collect()
            }

            fn section(settings: &Settings) -> &Self {
                &settings.agents.$field
            }

            fn defined(definitions: &Definitions) -> &BTreeMap<String, Defined<Self>> {
                &definitions.$all
            }
        }
    )* };
}

role_options! {
    ExecutorAgent, Executor, executor, executors,
        ["escalation" => |own| vec![&own.escalation.small, &own.escalation.large]];
    VerifierAgent, Verifier, verifier, verifiers,
        ["ensemble" => |own| own.ensemble.members.iter().map(String::as_str).collect()];
    CoordinatorAgent, Coordinator, coordinator, coordinators, [];
}

/// An agent in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedAgent {
    pub name: String,
    /// Equal to the name unless it is a definition.
    pub implementation: String,
    pub description: String,
    /// `implementation`, `built in` or the definition's file.
    pub origin: String,
}

/// Implementations that ask a model with a prompt.
const ASKS_A_MODEL: [&str; 2] = ["llama", "openai"];

impl ExecutorAgent {
    /// The name of its prompt template. A model behind a server was hardly trained on our own
    /// prompt.
    pub fn prompt_name(&self) -> &str {
        match self.implementation.as_str() {
            _ if !self.prompt.is_empty() => &self.prompt,
            "openai" => "step",
            _ => "compact",
        }
    }

    fn prompt_names(&self) -> Vec<&str> {
        let variants = self.prompt_variants.iter().map(String::as_str);
        std::iter::once(self.prompt_name()).chain(variants).collect()
    }
}

impl VerifierAgent {
    fn prompt_names(&self) -> Vec<&str> {
        vec![self.prompt_name()]
    }

    /// The name of its prompt template; by default the one for its verdict format.
    pub fn prompt_name(&self) -> &str {
        match self.verdict {
            _ if !self.prompt.is_empty() => &self.prompt,
            VerdictName::Report => "check",
            VerdictName::Token => "token",
            VerdictName::Likelihood => "likelihood",
        }
    }
}

impl CoordinatorAgent {
    fn prompt_names(&self) -> Vec<&str> {
        vec![self.prompt_name()]
    }

    /// The name of its prompt template.
    pub fn prompt_name(&self) -> &str {
        &self.prompt
    }
}

/// Maximum nesting depth of composite agents.
const DEPTH_MAX: usize = 4;

/// Options as JSON of the agents that the configuration uses, by role and name.
type Reached = BTreeMap<(Role, String), serde_json::Value>;

impl Settings {
    /// The names of a role's agents: implementations, then definitions.
    #[must_use]
    pub fn agent_names(&self, role: Role) -> Vec<String> {
        let implementations = implementations(role).iter().map(|known| known.name);
        implementations.chain(self.definitions.names(role)).map(str::to_owned).collect()
    }

    /// A role's agents for display: implementations, then definitions.
    #[must_use]
    pub fn agent_list<A: RoleOptions>(&self) -> Vec<ListedAgent> {
        let implementation = |known: &Implementation| ListedAgent {
            name: known.name.to_owned(),
            implementation: known.name.to_owned(),
            description: known.about.to_owned(),
            origin: "implementation".to_owned(),
        };
        let definition = |(name, defined): (&String, &Defined<A>)| ListedAgent {
            name: name.clone(),
            implementation: defined.options.implementation().to_owned(),
            description: defined.options.description().to_owned(),
            origin: defined.origin.clone(),
        };
        let definitions = A::defined(&self.definitions).iter().map(definition);
        implementations(A::ROLE).iter().map(implementation).chain(definitions).collect()
    }

    /// The options of an agent by name; their `implementation` is always an implementation's name.
    /// `None` if there is no such agent.
    #[must_use]
    pub fn agent<A: RoleOptions>(&self, name: &str) -> Option<A> {
        if let Some(defined) = A::defined(&self.definitions).get(name) {
            return Some(defined.options.clone());
        }
        implementations(A::ROLE).iter().find(|known| known.name == name)?;
        let mut options = A::section(self).clone();
        options.set_implementation(name);
        Some(options)
    }

    /// The configured agent of a role.
    ///
    /// # Panics
    /// The settings were not validated.
    #[must_use]
    pub fn configured<A: RoleOptions>(&self) -> A {
        self.agent(A::section(self).implementation())
            .expect("invariant: validated settings name existing agents")
    }

    /// The engines of the configured agents, of those of presets, and of the alternative of
    /// `agents.split`.
    #[must_use]
    pub fn engines_needed(&self) -> Vec<String> {
        let mut engines = BTreeSet::new();
        self.visit_preconfigured::<ExecutorAgent>(&mut |options| {
            engines.extend(options.engines().iter().cloned())
        });
        self.visit_preconfigured::<VerifierAgent>(&mut |options| {
            engines.extend(options.engines().iter().cloned())
        });
        self.visit_preconfigured::<CoordinatorAgent>(&mut |options| {
            engines.extend(options.engines().iter().cloned())
        });
        engines.into_iter().collect()
    }

    /// Leaves of several engines of a role's section the one that is asked about this task, so that
    /// no other is started.
    pub fn narrow_engines(&mut self, task: &str) {
        let agents = &mut self.agents;
        for names in [
            &mut agents.executor.engine,
            &mut agents.verifier.engine,
            &mut agents.coordinator.engine,
        ] {
            let has_learnt =
                |name: &String| self.engines.get(name).and_then(|engine| engine.has_learnt(task));
            if let Some(name) = first_that_knows(names.all(), has_learnt) {
                *names = name.as_str().into();
            }
        }
    }

    /// Visits the agents of a role that runs can have without choosing one in the request.
    fn visit_preconfigured<A: RoleOptions>(&self, visit: &mut dyn FnMut(&A)) {
        let split = &self.agents.split;
        let presets = self.presets.values().filter_map(|preset| preset.agent(A::ROLE));
        let other =
            (split.role == A::ROLE && !split.other.is_empty()).then_some(split.other.as_str());
        let names = [A::section(self).implementation()].into_iter().chain(presets).chain(other);
        for name in names {
            self.walk::<A>(name, 0, &mut |_, options| visit(options));
        }
    }

    /// Visits an agent and its parts.
    fn walk<A: RoleOptions>(&self, name: &str, depth: usize, visit: &mut dyn FnMut(&str, &A)) {
        let Some(options) = self.agent::<A>(name) else { return };
        visit(name, &options);
        if depth < DEPTH_MAX {
            options
                .members()
                .into_iter()
                .for_each(|member| self.walk::<A>(member, depth + 1, visit));
        }
    }

    /// Visits the configured agent of a role and its parts, each with its name.
    pub fn walk_configured<A: RoleOptions>(&self, visit: &mut dyn FnMut(&str, &A)) {
        self.walk::<A>(A::section(self).implementation(), 0, visit);
    }

    fn reach<A: RoleOptions>(&self, reached: &mut Reached) {
        self.walk_configured::<A>(&mut |name, options| {
            let options = serde_json::to_value(options).expect("invariant: options serialise");
            reached.insert((A::ROLE, name.to_owned()), options);
        });
    }

    /// The options of the configured agents and their parts.
    pub(super) fn reached(&self) -> Vec<(String, serde_json::Value)> {
        let mut reached = Reached::new();
        self.reach::<ExecutorAgent>(&mut reached);
        self.reach::<VerifierAgent>(&mut reached);
        self.reach::<CoordinatorAgent>(&mut reached);
        reached
            .into_iter()
            .map(|((role, name), options)| (format!("{role}.{name}"), options))
            .collect()
    }

    /// Checks a role's agents: definitions refer to known names, and no agent contains itself.
    pub(super) fn check_role<A: RoleOptions>(&self, origins: &Value) -> Result<(), SettingsError> {
        let role = A::ROLE;
        for (name, defined) in A::defined(&self.definitions) {
            let place = || format!("agents/{role}/{name}.toml ({})", defined.origin);
            let known = implementations(role)
                .iter()
                .find(|known| known.name == defined.options.implementation());
            let Some(known) = known else {
                let all: Vec<_> =
                    implementations(role).iter().map(|known| known.name.to_owned()).collect();
                return Err(unknown(
                    place(),
                    "implementation",
                    defined.options.implementation(),
                    all,
                ));
            };
            let always = ["description", "implementation"];
            let unused = defined.given.iter().find(|key| {
                !always.contains(&key.as_str()) && !known.options.contains(&key.as_str())
            });
            if let Some(unused) = unused {
                return Err(SettingsError::UnknownKey {
                    key: format!("{unused}` of the implementation `{}", known.name),
                    origin: place(),
                    nearest: None,
                    known: known.options.iter().map(|key| (*key).to_owned()).collect(),
                });
            }
            self.check_members(&defined.options, name, &place(), 0)?;
        }
        let section = A::section(self);
        if implementations(role).iter().any(|known| known.name == section.implementation()) {
            let own = super::load::origin_of(origins, &["agents", role.name()]);
            self.check_members(section, section.implementation(), &own, 0)?;
        }
        Ok(())
    }

    fn check_members<A: RoleOptions>(
        &self,
        options: &A,
        name: &str,
        place: &str,
        depth: usize,
    ) -> Result<(), SettingsError> {
        if depth > DEPTH_MAX {
            let message = format!(
                "`{name}` has agents nested more than {DEPTH_MAX} deep: does it contain itself?"
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(engine) =
            options.engines().iter().find(|name| !self.engines.contains_key(*name))
        {
            return Err(unknown(
                place.to_owned(),
                "engine",
                engine,
                self.engines.keys().cloned().collect(),
            ));
        }
        if options.program().is_some_and(|program| program.command.is_empty()) {
            let message = format!(
                "`{name}` is a program, but `program.command` is empty; set it to the program and its arguments, such as \
                 [\"python3\", \"agents/examples/{}.py\"]",
                A::ROLE
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(pool) = options.pool() {
            if self.pools.is_empty() {
                let message = format!(
                    "`{name}` uses the server pool `{pool}`, but no pool is configured: add [[pools.NAME.upstreams]] with url \
                     and model, and set `pool` to NAME"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
            let Some(servers) = self.pools.get(pool) else {
                return Err(unknown(
                    place.to_owned(),
                    "pool",
                    pool,
                    self.pools.keys().cloned().collect(),
                ));
            };
            if servers.upstreams.is_empty() {
                let message = format!(
                    "`pools.{pool}` has no servers; add them as `[[pools.{pool}.upstreams]]` with url and model"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
        }
        for member in options.members() {
            let Some(below) = self.agent::<A>(member) else {
                return Err(unknown(
                    place.to_owned(),
                    options.implementation(),
                    member,
                    self.agent_names(A::ROLE),
                ));
            };
            self.check_members(&below, member, place, depth + 1)?;
        }
        Ok(())
    }
}

pub(super) fn unknown(origin: String, key: &str, found: &str, known: Vec<String>) -> SettingsError {
    let nearest = nearest(found, known.iter().map(String::as_str)).map(str::to_owned);
    SettingsError::UnknownName {
        key: key.to_owned(),
        origin,
        found: found.to_owned(),
        nearest,
        known,
    }
}
