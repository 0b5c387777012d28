//! `agents show`: an agent's origin, options and templates.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;

use super::{OfRole, with_role};
use crate::cli::output::print;
use prime_protocol::Role;
use prime_settings::{RoleOptions, Settings, implementations};

/// An agent with its origin, its options and the templates that they name.
struct Shown {
    origin: String,
    implementation: String,
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
        let options: A = self.settings.agent(self.name)?;
        let listed =
            self.settings.agent_list::<A>().into_iter().find(|agent| agent.name == self.name)?;
        Some(Shown {
            origin: listed.origin,
            implementation: options.implementation().to_owned(),
            templates: options.templates(),
            options: serde_json::to_value(&options).expect("invariant: options serialise"),
        })
    }
}

/// The options that an implementation uses.
fn used(role: Role, shown: &Shown) -> Value {
    let known = implementations(role).iter().find(|known| known.name == shown.implementation);
    let used = known.map_or(&[][..], |known| known.options);
    let is_used =
        |key: &str| ["description", "implementation"].contains(&key) || used.contains(&key);
    let options = shown.options.as_object().into_iter().flatten();
    options
        .filter(|(key, _)| is_used(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub fn show(settings: &Settings, role: Role, name: &str) -> anyhow::Result<ExitCode> {
    let Some(shown) = with_role(role, &Find { settings, name }) else {
        bail!("there is no {role} `{name}`; known: {}", settings.agent_names(role).join(", "));
    };
    let options = used(role, &shown);
    let mut text = format!("# {role} `{name}`, defined: {}\n", shown.origin);
    text.push_str(&toml::to_string(&options)?);
    for key in &shown.templates {
        let Some(template) = settings.definitions.templates.get(key) else { continue };
        writeln!(text, "\n# template {key} ({}):", template.origin)?;
        template.text.lines().try_for_each(|line| writeln!(text, "# | {line}"))?;
    }
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
