//! `prime-agents agents`: lists, shows, checks and tries the configurable agents. One file for each
//! subcommand.

mod check;
mod list;
mod show;
mod turn;

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

pub use check::handshakes;

use super::Configuration;
use super::own_model::OwnModel;
use crate::cli::output::{Output, print};
use prime_protocol::Role;
use prime_settings::{CoordinatorAgent, ExecutorAgent, RoleOptions, Settings, VerifierAgent};

#[derive(Args)]
pub struct AgentsArguments {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Subcommand)]
enum AgentsCommand {
    /// List the implementations and definitions of all roles
    List {
        #[command(flatten)]
        configuration: Configuration,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Show an agent: where it is defined, its options as TOML, its templates
    Show(Named),
    /// Validate all definitions, try each template on every task, and start each program
    Check {
        #[command(flatten)]
        configuration: Configuration,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Run one turn of an agent and show prompt, answer and verdict
    Try(turn::TryArguments),
    /// Print the JSON Schema of a role's definition files, for editors
    Schema {
        /// Role
        #[arg(value_enum)]
        role: RoleName,
    },
}

/// An agent of a role.
#[derive(Args)]
struct Named {
    /// Role
    #[arg(value_enum)]
    role: RoleName,
    /// Name of an implementation or a definition
    name: String,
    #[command(flatten)]
    configuration: OwnModel,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    Executor,
    Verifier,
    Coordinator,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Executor => Self::Executor,
            RoleName::Verifier => Self::Verifier,
            RoleName::Coordinator => Self::Coordinator,
        }
    }
}

/// An operation on the options of any role.
trait OfRole {
    type Out;
    fn of<A: RoleOptions>(&self) -> Self::Out;
}

fn with_role<T: OfRole>(role: Role, act: &T) -> T::Out {
    match role {
        Role::Executor => act.of::<ExecutorAgent>(),
        Role::Verifier => act.of::<VerifierAgent>(),
        Role::Coordinator => act.of::<CoordinatorAgent>(),
    }
}

pub fn agents(arguments: &AgentsArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        AgentsCommand::List { configuration, output } => {
            list::list(&configuration.load()?, *output)
        }
        AgentsCommand::Show(named) => {
            show::show(&named.configuration.load()?, named.role.into(), &named.name)
        }
        AgentsCommand::Check { configuration, output } => {
            check::check(&configuration.load()?, *output)
        }
        AgentsCommand::Try(arguments) => turn::turn(arguments),
        AgentsCommand::Schema { role } => {
            let schema = Settings::definition_schema((*role).into());
            print(serde_json::to_string_pretty(&schema)? + "\n")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
