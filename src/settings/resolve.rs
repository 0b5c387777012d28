//! From the name of an agent to its options: an implementation with those of its role's section, or a definition.

use std::collections::{BTreeMap, BTreeSet};

use config::Value;
use serde::Serialize;

use super::agents::{CoordinatorAgent, ExecutorAgent, Implementation, VerdictName, VerifierAgent, implementations};
use super::definitions::{Defined, Definitions};
use super::error::SettingsError;
use super::nearest::nearest;
use super::program::Program;
use super::sections::Settings;
use prime_protocol::Role;

/// The options of a role's agents.
pub trait RoleOptions: Clone + Serialize {
    const ROLE: Role;

    /// What it is for, in words.
    fn description(&self) -> &str;
    fn implementation(&self) -> &str;
    fn set_implementation(&mut self, name: &str);
    /// The engine that it asks, where its implementation asks one.
    fn engine(&self) -> Option<&str>;
    /// The pool that it asks, where its implementation asks one.
    fn pool(&self) -> Option<&str>;
    /// The program that it runs, where its implementation runs one.
    fn program(&self) -> Option<&Program>;
    /// The agents of the same role that it is made of, by name.
    fn members(&self) -> Vec<&str>;
    /// The templates of its prompts, as `role/file`, where its implementation asks a model.
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

            fn engine(&self) -> Option<&str> {
                (self.implementation == "llama").then_some(self.engine.as_str())
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
                let names = [self.prompt_name(), &self.system].into_iter().filter(|name| !name.is_empty());
                names.map(|name| format!("{}/{name}.j2", Self::ROLE)).collect()
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

/// An agent as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedAgent {
    pub name: String,
    /// Its own name, unless it is a definition.
    pub implementation: String,
    pub description: String,
    /// `implementation`, `built in` or the definition's file.
    pub origin: String,
}

/// Implementations that ask a model with a prompt.
const ASKS_A_MODEL: [&str; 2] = ["llama", "openai"];

impl ExecutorAgent {
    /// The template of its prompt.
    pub fn prompt_name(&self) -> &str {
        &self.prompt
    }
}

impl VerifierAgent {
    /// The template of its prompt: the one that goes with the form of its verdicts, unless another is given.
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
    /// The template of its prompt.
    pub fn prompt_name(&self) -> &str {
        &self.prompt
    }
}

/// Deepest nesting of agents that are made of others.
const DEPTH_MAX: usize = 4;

/// An agent that the configuration reaches: its role, its name, and its options as JSON.
type Reached = BTreeMap<(Role, String), serde_json::Value>;

impl Settings {
    /// The names of a role's agents: implementations, then definitions.
    #[must_use]
    pub fn agent_names(&self, role: Role) -> Vec<String> {
        let implementations = implementations(role).iter().map(|known| known.name);
        implementations.chain(self.definitions.names(role)).map(str::to_owned).collect()
    }

    /// A role's agents, for people: implementations, then definitions.
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

    /// The options of an agent by its name; `implementation` in them is that of an implementation. `None` where there is no
    /// such agent.
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
    /// When the settings were not validated.
    #[must_use]
    pub fn configured<A: RoleOptions>(&self) -> A {
        self.agent(A::section(self).implementation()).expect("invariant: validated settings name existing agents")
    }

    /// The engines that these agents ask: the configured ones, those of presets, and the other one of `agents.split`.
    #[must_use]
    pub fn engines_needed(&self) -> Vec<String> {
        let mut engines = BTreeSet::new();
        self.visit_at_hand::<ExecutorAgent>(&mut |options| engines.extend(options.engine().map(str::to_owned)));
        self.visit_at_hand::<VerifierAgent>(&mut |options| engines.extend(options.engine().map(str::to_owned)));
        self.visit_at_hand::<CoordinatorAgent>(&mut |options| engines.extend(options.engine().map(str::to_owned)));
        engines.into_iter().collect()
    }

    /// Visits the agents of a role that runs can have without a choice of their own.
    fn visit_at_hand<A: RoleOptions>(&self, visit: &mut dyn FnMut(&A)) {
        let split = &self.agents.split;
        let presets = self.presets.values().filter_map(|preset| preset.agent(A::ROLE));
        let other = (split.role == A::ROLE && !split.other.is_empty()).then_some(split.other.as_str());
        let names = [A::section(self).implementation()].into_iter().chain(presets).chain(other);
        for name in names {
            self.walk::<A>(name, 0, &mut |_, options| visit(options));
        }
    }

    /// Visits an agent and all that it is made of.
    fn walk<A: RoleOptions>(&self, name: &str, depth: usize, visit: &mut dyn FnMut(&str, &A)) {
        let Some(options) = self.agent::<A>(name) else { return };
        visit(name, &options);
        if depth < DEPTH_MAX {
            options.members().into_iter().for_each(|member| self.walk::<A>(member, depth + 1, visit));
        }
    }

    /// Visits the configured agent of a role and all that it is made of, each with its name.
    pub fn walk_configured<A: RoleOptions>(&self, visit: &mut dyn FnMut(&str, &A)) {
        self.walk::<A>(A::section(self).implementation(), 0, visit);
    }

    fn reach<A: RoleOptions>(&self, reached: &mut Reached) {
        self.walk_configured::<A>(&mut |name, options| {
            let options = serde_json::to_value(options).expect("invariant: options serialise");
            reached.insert((A::ROLE, name.to_owned()), options);
        });
    }

    /// What decides how the configured agents work: their options, and those of the agents that they are made of.
    pub(super) fn reached(&self) -> Vec<(String, serde_json::Value)> {
        let mut reached = Reached::new();
        self.reach::<ExecutorAgent>(&mut reached);
        self.reach::<VerifierAgent>(&mut reached);
        self.reach::<CoordinatorAgent>(&mut reached);
        reached.into_iter().map(|((role, name), options)| (format!("{role}.{name}"), options)).collect()
    }

    /// Checks the agents of a role: what definitions name, and that nothing is made of itself.
    pub(super) fn check_role<A: RoleOptions>(&self, origins: &Value) -> Result<(), SettingsError> {
        let role = A::ROLE;
        for (name, defined) in A::defined(&self.definitions) {
            let place = || format!("agents/{role}/{name}.toml ({})", defined.origin);
            let known = implementations(role).iter().find(|known| known.name == defined.options.implementation());
            let Some(known) = known else {
                let all: Vec<_> = implementations(role).iter().map(|known| known.name.to_owned()).collect();
                return Err(unknown(place(), "implementation", defined.options.implementation(), all));
            };
            let always = ["description", "implementation"];
            let unused = defined
                .given
                .iter()
                .find(|key| !always.contains(&key.as_str()) && !known.options.contains(&key.as_str()));
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
            let message = format!("`{name}` is made of agents more than {DEPTH_MAX} deep: does it contain itself?");
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(engine) = options.engine()
            && !self.engines.contains_key(engine)
        {
            return Err(unknown(place.to_owned(), "engine", engine, self.engines.keys().cloned().collect()));
        }
        if options.program().is_some_and(|program| program.command.is_empty()) {
            let message = format!(
                "`{name}` is a program, and `program.command` is empty; set it to the program and its arguments, such as \
                 [\"python3\", \"agents/examples/{}.py\"]",
                A::ROLE
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(pool) = options.pool() {
            if self.pools.is_empty() {
                let message = format!(
                    "`{name}` asks the pool of servers `{pool}`, and none is configured: add [[pools.NAME.upstreams]] with url, \
                     model and concurrent_max, and set `pool` to NAME"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
            let Some(servers) = self.pools.get(pool) else {
                return Err(unknown(place.to_owned(), "pool", pool, self.pools.keys().cloned().collect()));
            };
            if servers.upstreams.is_empty() {
                let message = format!(
                    "`pools.{pool}` has no servers; add them as `[[pools.{pool}.upstreams]]` with url, model and \
                     concurrent_max"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
        }
        for member in options.members() {
            let Some(below) = self.agent::<A>(member) else {
                return Err(unknown(place.to_owned(), options.implementation(), member, self.agent_names(A::ROLE)));
            };
            self.check_members(&below, member, place, depth + 1)?;
        }
        Ok(())
    }
}

pub(super) fn unknown(origin: String, key: &str, found: &str, known: Vec<String>) -> SettingsError {
    let nearest = nearest(found, known.iter().map(String::as_str)).map(str::to_owned);
    SettingsError::UnknownName { key: key.to_owned(), origin, found: found.to_owned(), nearest, known }
}
