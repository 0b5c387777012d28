//! `agents show`: an agent's origin, options and templates.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;

use super::{OfRole, with_role};
use crate::cli::output::print;
use prime_protocol::Role;
use prime_settings::{Agent, Implementation as _, RoleOptions, Settings};

/// An agent with its origin, its options and the templates that they name.
struct Shown {
    origin: String,
    /// The options that its implementation uses.
    options: Value,
    templates: Vec<String>,
}

struct Find<'a> {
    settings: &'a Settings,
    name: &'a str,
}

impl OfRole for Find<'_> {
    type Out = Option<Shown>;

    fn of<A: RoleOptions>(&self) -> Self::Out {
        let agent = self.settings.agent::<A>(self.name)?;
        let listed =
            self.settings.agent_list::<A>().into_iter().find(|agent| agent.name == self.name)?;
        Some(Shown { origin: listed.origin, options: used(&agent), templates: agent.templates() })
    }
}

/// The options that an agent's implementation uses.
fn used<A: RoleOptions>(agent: &Agent<A>) -> Value {
    let used = agent.implementation.info().options;
    let is_used =
        |key: &str| ["description", "implementation"].contains(&key) || used.contains(&key);

    let options = serde_json::to_value(&agent.options).expect("invariant: options serialise");
    let options = options.as_object().into_iter().flatten();
    options
        .filter(|(key, _)| is_used(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub fn show(settings: &Settings, role: Role, name: &str) -> anyhow::Result<ExitCode> {
    let Some(shown) = with_role(role, &Find { settings, name }) else {
        bail!("there is no {role} `{name}`; known: {}", settings.agent_names(role).join(", "));
    };

    let mut text = format!("# {role} `{name}`, defined: {}\n", shown.origin);
    text.push_str(&toml::to_string(&shown.options)?);
    for key in &shown.templates {
        let Some(template) = settings.definitions.templates.get(key) else { continue };
        writeln!(text, "\n# template {key} ({}):", template.origin)?;
        template.text.lines().try_for_each(|line| writeln!(text, "# | {line}"))?;
    }

    print(text)?;
    Ok(ExitCode::SUCCESS)
}
