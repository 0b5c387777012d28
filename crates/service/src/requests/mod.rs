//! From what a client wants to the spec of a run: one resolution for HTTP, OpenAI's clients, MCP and
//! the command line.
//!
//! - `run_request`: what a client may ask for.
//! - `instance`: the problem that it names or contains.
//! - `chosen_settings`: the settings with its choices, within what the configuration allows.
//! - `chosen_budget`: the part of these that limits a run.
//! - `queueing`: when it is to begin and to end.
//! - `checked`: both together, as far as they can be checked without agents.
//! - `resolve`: with the agents, the spec. Also the spec of a fork that changes agents.
//! - `error`: which field is invalid, and why. Each way in maps it to its own form.

mod checked;
mod chosen_budget;
mod chosen_settings;
mod error;
mod instance;
mod queueing;
mod resolve;
mod run_request;

pub use checked::CheckedRequest;
pub use chosen_budget::ChosenBudget;
pub use chosen_settings::check_overrides;
pub use error::{Reason, RequestError};
pub use instance::Instance;
pub(crate) use instance::OWN_INPUT;
pub use queueing::parse_time;
pub use resolve::{ResolvedRun, never_verified, resolve, spec_with_agents};
pub use run_request::{BudgetRequest, RunRequest, TaskSlug};
