//! Returns whether an agent can work here. No run needs to be refused to find that out.

use prime_protocol::Role;
use prime_settings::{CoordinatorAgent, ExecutorAgent, Settings, VerifierAgent};

use super::build::{Constructed, factory};
use super::{RegistryError, Resources};
use crate::process::ProcessError;

/// Checks that an agent can be built: that its engines run, and that its options are complete. Starts
/// nothing: a program can be at fault all the same.
///
/// # Errors
/// Why it cannot be built.
pub fn check_usable(
    settings: &Settings,
    resources: &Resources,
    role: Role,
    name: &str,
) -> Result<(), RegistryError> {
    match role {
        Role::Executor => check::<ExecutorAgent>(settings, resources, name),
        Role::Verifier => check::<VerifierAgent>(settings, resources, name),
        Role::Coordinator => check::<CoordinatorAgent>(settings, resources, name),
    }
}

fn check<O: Constructed>(
    settings: &Settings,
    resources: &Resources,
    name: &str,
) -> Result<(), RegistryError> {
    let (mut has_program, mut without_command) = (false, None);
    settings.walk::<O>(name, &mut |part, agent| {
        let Some(program) = agent.program() else { return };
        has_program = true;
        if program.command.is_empty() {
            without_command = Some(part.to_owned());
        }
    });

    if let Some(part) = without_command {
        let agent = format!("{} `{part}`", O::ROLE);
        let reason = ProcessError::NoCommand { agent }.to_string();
        return Err(RegistryError::Unusable { role: O::ROLE, name: name.to_owned(), reason });
    }
    // To build one with a program would start it.
    if has_program { Ok(()) } else { factory::<O>(settings, resources, name).map(drop) }
}
