//! Reloads the configuration while the daemon serves, on a signal or by request.
//!
//! - `apply`: puts new settings in force. `route`: asks for them over HTTP.

mod apply;
pub mod route;

pub use apply::{Reload, ReloadRequest, Reloaded, Reloads, apply, hidden_tasks};
