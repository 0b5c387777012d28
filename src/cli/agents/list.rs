//! `prime-agents agents list`.

use std::process::ExitCode;

use super::{OfRole, with_role};
use crate::cli::bench::{say, table};
use crate::settings::{ListedAgent, RoleOptions, Settings};
use prime_protocol::Role;

struct Listed<'a>(&'a Settings);

impl OfRole for Listed<'_> {
    type Out = (String, Vec<ListedAgent>);

    fn of<A: RoleOptions>(&self) -> Self::Out {
        (A::section(self.0).implementation().to_owned(), self.0.agent_list::<A>())
    }
}

pub fn list(settings: &Settings) -> ExitCode {
    let mut rows = Vec::new();
    for role in Role::ALL {
        let (configured, agents) = with_role(role, &Listed(settings));
        for agent in agents {
            let mark = if agent.name == configured { "*" } else { "" };
            let implementation = if agent.implementation == agent.name { String::new() } else { agent.implementation };
            rows.push(vec![
                role.to_string(),
                format!("{}{mark}", agent.name),
                implementation,
                agent.origin,
                agent.description,
            ]);
        }
    }
    let table = table(&["role", "name", "of", "defined", "what it is"], rows);
    say(&format!("{table}\n* configured\n"));
    ExitCode::SUCCESS
}
