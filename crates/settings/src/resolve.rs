//! Resolves an agent's name to its options: an implementation with those of its role's section, or
//! a definition.

use std::collections::BTreeMap;

use config::Value;
use serde::Serialize;

use super::adapters::AgentAdapters;
use super::agents::{CoordinatorAgent, ExecutorAgent, VerdictName, VerifierAgent};
use super::definitions::{Defined, Definitions};
use super::engine_names::first_that_knows;
use super::error::SettingsError;
use super::implementation::{
    Backing, CoordinatorImplementation, ExecutorImplementation, Implementation, ImplementationInfo,
    VerifierImplementation, implementations,
};
use super::program::Program;
use super::references::unknown;
use super::sections::Settings;
use prime_protocol::Role;

/// The options of a role's agents: its section, or a definition.
pub trait RoleOptions: Clone + Serialize {
    /// The implementations of the role.
    type Implementation: Implementation;
    /// The role of these agents.
    const ROLE: Role;

    /// What it is for.
    fn description(&self) -> &str;
    /// The value of the key `implementation`: an implementation's name or, in a role's section, a
    /// definition's.
    fn implementation_name(&self) -> &str;
    /// Sets the key `implementation`.
    fn set_implementation(&mut self, name: &str);
    /// Names of engines, in the order in which they are asked; empty if no engine is named.
    fn engine_names(&self) -> &[String];
    /// The adapters of the engines' or servers' model.
    fn adapters(&self) -> AgentAdapters<'_>;
    /// Keeps the adapter for this task only.
    fn narrow_adapters(&mut self, task: &str);
    /// Returns whether an engine applies the chat template of its model's file.
    fn has_chat_template(&self) -> bool;
    /// The name of a pool; empty = none.
    fn pool_name(&self) -> &str;
    /// The options of the program that `process` runs.
    fn program_options(&self) -> &Program;
    /// Names of the agents of the same role that an agent with members is composed of.
    fn member_names(&self) -> Vec<&str>;
    /// Names of the prompt templates that this implementation uses, if it asks a model.
    fn prompt_names(&self, implementation: Self::Implementation) -> Vec<&str>;
    /// The name of the system prompt's template; empty = none.
    fn system_name(&self) -> &str;
    /// The role's section.
    fn section(settings: &Settings) -> &Self;
    /// The definitions of the role, by name.
    fn defined(definitions: &Definitions) -> &BTreeMap<String, Defined<Self>>;
}

macro_rules! role_options {
    ($(
        $options:ident, $implementation:ident, $role:ident, $field:ident, $all:ident,
            $members:expr;
    )*) => { $(
        impl RoleOptions for $options {
            type Implementation = $implementation;
            const ROLE: Role = Role::$role;

            fn description(&self) -> &str {
                &self.description
            }

            fn implementation_name(&self) -> &str {
                &self.implementation
            }

            fn set_implementation(&mut self, name: &str) {
                name.clone_into(&mut self.implementation);
            }

            fn engine_names(&self) -> &[String] {
                self.engine.all()
            }

            fn adapters(&self) -> AgentAdapters<'_> {
                AgentAdapters {
                    own: &self.adapter,
                    scale: self.adapter_scale,
                    by_task: &self.adapters,
                }
            }

            fn narrow_adapters(&mut self, task: &str) {
                self.adapter =
                    RoleOptions::adapters(self).of_task(task).unwrap_or_default().to_owned();
                self.adapters.clear();
            }

            fn has_chat_template(&self) -> bool {
                self.chat_template
            }

            fn pool_name(&self) -> &str {
                &self.pool
            }

            fn program_options(&self) -> &Program {
                &self.program
            }

            fn member_names(&self) -> Vec<&str> {
                let members: fn(&Self) -> Vec<&str> = $members;
                members(self)
            }

            fn prompt_names(&self, implementation: $implementation) -> Vec<&str> {
                Self::prompts(self, implementation)
            }

            fn system_name(&self) -> &str {
                &self.system
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
    ExecutorAgent, ExecutorImplementation, Executor, executor, executors,
        |own| vec![&own.escalation.small, &own.escalation.large];
    VerifierAgent, VerifierImplementation, Verifier, verifier, verifiers,
        |own| own.ensemble.members.iter().map(String::as_str).collect();
    CoordinatorAgent, CoordinatorImplementation, Coordinator, coordinator, coordinators,
        |_| Vec::new();
}

/// An agent that was found by its name: what implements it, and with which options.
#[derive(Clone, Debug)]
pub struct Agent<A: RoleOptions> {
    /// The implementation that does the work.
    pub implementation: A::Implementation,
    /// Its options: those of the definition, or of the role's section.
    pub options: A,
}

impl<A: RoleOptions> Agent<A> {
    fn backing(&self) -> Backing {
        self.implementation.backing()
    }

    /// Its engines, if its implementation uses some.
    pub fn engines(&self) -> &[String] {
        if self.backing() == Backing::Engine { self.options.engine_names() } else { &[] }
    }

    /// Its pool, if its implementation uses one.
    pub fn pool(&self) -> Option<&str> {
        (self.backing() == Backing::Pool).then(|| self.options.pool_name())
    }

    /// The adapters of its model, if it asks one.
    pub fn adapters(&self) -> Option<AgentAdapters<'_>> {
        self.backing().is_model().then(|| self.options.adapters())
    }

    /// Its program, if its implementation runs one.
    pub fn program(&self) -> Option<&Program> {
        (self.backing() == Backing::Program).then(|| self.options.program_options())
    }

    /// Names of the agents of the same role that it is composed of.
    pub fn members(&self) -> Vec<&str> {
        if self.backing() == Backing::Members { self.options.member_names() } else { Vec::new() }
    }

    /// Its prompt templates as `role/file`, if its implementation asks a model.
    pub fn templates(&self) -> Vec<String> {
        if !self.backing().is_model() {
            return Vec::new();
        }

        let prompts = self.options.prompt_names(self.implementation);
        prompts
            .into_iter()
            .chain([self.options.system_name()])
            .filter(|name| !name.is_empty())
            .map(|name| format!("{}/{name}.j2", A::ROLE))
            .collect()
    }

    /// The prompt template of its first trajectory, without the role's folder.
    ///
    /// # Panics
    /// Never: each role has at least one.
    pub fn prompt_name(&self) -> &str {
        let names = self.options.prompt_names(self.implementation);
        names.first().expect("invariant: each role has a prompt")
    }
}

/// An agent in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedAgent {
    /// The name by which requests and the configuration choose it.
    pub name: String,
    /// Equal to the name unless it is a definition.
    pub implementation: String,
    /// What it is for; shown in lists.
    pub description: String,
    /// `implementation`, `built in` or the definition's file.
    pub origin: String,
}

impl ExecutorAgent {
    /// Its own prompt, then those that further trajectories of a round take in turn.
    fn prompts(&self, implementation: ExecutorImplementation) -> Vec<&str> {
        let own = match implementation {
            _ if !self.prompt.is_empty() => &self.prompt,
            // A model on a server was hardly trained on our own prompt.
            ExecutorImplementation::Openai => "step",
            _ => "compact",
        };
        std::iter::once(own).chain(self.prompt_variants.iter().map(String::as_str)).collect()
    }
}

impl VerifierAgent {
    /// Its own prompt, by default the one for its verdict format.
    fn prompts(&self, implementation: VerifierImplementation) -> Vec<&str> {
        let own = match self.verdict {
            _ if !self.prompt.is_empty() => &self.prompt,
            _ if implementation == VerifierImplementation::Reward => "reward",
            VerdictName::Report => "check",
            VerdictName::Token => "token",
            VerdictName::Likelihood => "likelihood",
            VerdictName::Rating => "rating",
        };
        vec![own]
    }
}

impl CoordinatorAgent {
    fn prompts(&self, _: CoordinatorImplementation) -> Vec<&str> {
        vec![&self.prompt]
    }
}

/// Maximum nesting depth of composite agents.
pub(super) const DEPTH_MAX: usize = 4;

/// Options as JSON of the agents that the configuration uses, by role and name.
type Reached = BTreeMap<(Role, String), serde_json::Value>;

fn options_of<A: RoleOptions>(agent: &Agent<A>) -> serde_json::Value {
    serde_json::to_value(&agent.options).expect("invariant: options serialise")
}

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
        let implementation = |known: &ImplementationInfo| ListedAgent {
            name: known.name.to_owned(),
            implementation: known.name.to_owned(),
            description: known.about.to_owned(),
            origin: "implementation".to_owned(),
        };
        let definition = |(name, defined): (&String, &Defined<A>)| ListedAgent {
            name: name.clone(),
            implementation: defined.options.implementation_name().to_owned(),
            description: defined.options.description().to_owned(),
            origin: defined.origin.clone(),
        };
        let definitions = A::defined(&self.definitions).iter().map(definition);
        implementations(A::ROLE).iter().map(implementation).chain(definitions).collect()
    }

    /// An agent by name: a definition, or an implementation with the options of its role's
    /// section. `None` if there is no such agent.
    #[must_use]
    pub fn agent<A: RoleOptions>(&self, name: &str) -> Option<Agent<A>> {
        // A definition cannot have the name of an implementation, so the order does not matter.
        if let Some(defined) = A::defined(&self.definitions).get(name) {
            let options = defined.options.clone();
            let implementation = A::Implementation::find(options.implementation_name())?;
            return Some(Agent { implementation, options });
        }

        // The section may name another implementation; its options serve any that reads them.
        let implementation = A::Implementation::find(name)?;
        let mut options = A::section(self).clone();
        options.set_implementation(name);
        Some(Agent { implementation, options })
    }

    /// The file of the configured verifier's card, if it has one. The card of the section does not
    /// apply to a definition.
    #[must_use]
    pub fn verifier_card(&self) -> Option<&str> {
        let section = &self.agents.verifier;
        let defined = self.definitions.verifiers.get(&section.implementation);
        let own = defined.filter(|defined| defined.given.iter().any(|key| key == "card"));
        let card = own.map_or(&section.card, |defined| &defined.options.card);
        (!card.is_empty()).then_some(card)
    }

    /// The configured agent of a role.
    ///
    /// # Panics
    /// The settings were not validated.
    #[must_use]
    pub fn configured<A: RoleOptions>(&self) -> Agent<A> {
        self.agent(A::section(self).implementation_name())
            .expect("invariant: validated settings name existing agents")
    }

    /// Reduces the engines and adapters of each role's section to those that are asked about this
    /// task, so that no other is started.
    pub fn narrow_engines(&mut self, task: &str) {
        let agents = &mut self.agents;
        agents.executor.narrow_adapters(task);
        agents.verifier.narrow_adapters(task);
        agents.coordinator.narrow_adapters(task);
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
    pub(super) fn visit_preconfigured<A: RoleOptions>(
        &self,
        visit: &mut dyn FnMut(&str, &Agent<A>),
    ) {
        let split = &self.agents.split;
        let presets = self.presets.values().filter_map(|preset| preset.agent(A::ROLE));
        let other =
            (split.role == A::ROLE && !split.other.is_empty()).then_some(split.other.as_str());
        let locator = self.locator().filter(|_| A::ROLE == Role::Verifier);
        let names = [A::section(self).implementation_name()]
            .into_iter()
            .chain(presets)
            .chain(other)
            .chain(locator);
        for name in names {
            self.walk::<A>(name, visit);
        }
    }

    /// Visits an agent and its parts, each with its name.
    pub fn walk<A: RoleOptions>(&self, name: &str, visit: &mut dyn FnMut(&str, &Agent<A>)) {
        self.walk_at::<A>(name, 0, visit);
    }

    fn walk_at<A: RoleOptions>(
        &self,
        name: &str,
        depth: usize,
        visit: &mut dyn FnMut(&str, &Agent<A>),
    ) {
        let Some(agent) = self.agent::<A>(name) else { return };
        visit(name, &agent);

        // Validated settings nest less; before the check, an agent may contain itself.
        if depth < DEPTH_MAX {
            for member in agent.members() {
                self.walk_at::<A>(member, depth + 1, visit);
            }
        }
    }

    /// Visits the configured agent of a role and its parts, each with its name.
    pub fn walk_configured<A: RoleOptions>(&self, visit: &mut dyn FnMut(&str, &Agent<A>)) {
        self.walk::<A>(A::section(self).implementation_name(), visit);
    }

    fn reach<A: RoleOptions>(&self, reached: &mut Reached) {
        self.walk_configured::<A>(&mut |name, agent| {
            reached.insert((A::ROLE, name.to_owned()), options_of(agent));
        });
    }

    /// The options of the configured agents and their parts.
    pub(super) fn reached(&self) -> Vec<(String, serde_json::Value)> {
        let mut reached = Reached::new();
        self.reach::<ExecutorAgent>(&mut reached);
        self.reach::<VerifierAgent>(&mut reached);
        self.reach::<CoordinatorAgent>(&mut reached);
        self.walk_locator(&mut |name, agent| {
            reached.insert((Role::Verifier, name.to_owned()), options_of(agent));
        });
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
            let named = defined.options.implementation_name();
            let Some(implementation) = A::Implementation::find(named) else {
                let all: Vec<_> =
                    implementations(role).iter().map(|known| known.name.to_owned()).collect();
                return Err(unknown(place(), "implementation", named, all));
            };

            let known = implementation.info();
            // An option that the implementation ignores is a mistake, not a default for later.
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
            let agent = Agent { implementation, options: defined.options.clone() };
            self.check_members(&agent, name, &place(), 0)?;
        }

        // A definition that the section names has been checked above.
        let section = A::section(self);
        let named = section.implementation_name();
        if let Some(implementation) = A::Implementation::find(named) {
            let own = super::load::origin_of(origins, &["agents", role.name()]);
            let agent = Agent { implementation, options: section.clone() };
            self.check_members(&agent, named, &own, 0)?;
        }

        let split = &self.agents.split;
        if split.role == role
            && !split.other.is_empty()
            && let Some(other) = self.agent::<A>(&split.other)
        {
            let own = super::load::origin_of(origins, &["agents", "split", "other"]);
            self.check_members(&other, &split.other, &own, 0)?;
        }
        Ok(())
    }
}
