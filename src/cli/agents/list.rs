//! `agents list`: the implementations and definitions of all roles.

use std::process::ExitCode;

use serde_json::json;

use super::{OfRole, with_role};
use crate::cli::output::{Output, print, print_json};
use crate::cli::table::Table;
use prime_protocol::Role;
use prime_settings::{ListedAgent, RoleOptions, Settings};

struct Listed<'a>(&'a Settings);

impl OfRole for Listed<'_> {
    type Out = (String, Vec<ListedAgent>);

    fn of<A: RoleOptions>(&self) -> Self::Out {
        (A::section(self.0).implementation_name().to_owned(), self.0.agent_list::<A>())
    }
}

pub fn list(settings: &Settings, output: Output) -> anyhow::Result<ExitCode> {
    if output == Output::Json {
        print_json(&Role::ALL.map(|role| {
            let (configured, agents) = with_role(role, &Listed(settings));
            json!({"role": role, "configured": configured, "agents": agents})
        }))?;
        return Ok(ExitCode::SUCCESS);
    }

    let mut rows = Vec::new();
    for role in Role::ALL {
        let (configured, agents) = with_role(role, &Listed(settings));
        for agent in agents {
            let mark = if agent.name == configured { "*" } else { "" };
            let implementation = if agent.implementation == agent.name {
                String::new()
            } else {
                agent.implementation
            };
            rows.push([
                role.to_string(),
                format!("{}{mark}", agent.name),
                implementation,
                agent.origin,
                agent.description,
            ]);
        }
    }

    let table = Table::new(["role", "name", "of", "defined", "description"], rows);
    print(format_args!("{table}\n* configured\n"))?;
    Ok(ExitCode::SUCCESS)
}
