//! The benchmark and its runs as tools of the Model Context Protocol (modelcontextprotocol.io),
//! over stdio and over HTTP.
//!
//! - `tools`: what each tool is called, takes and is for. `server`: the protocol's handler, which
//!   dispatches to
//! - `backend`: what carries a call out: this process, or a daemon elsewhere (the command line has
//!   that one).
//! - `route`: the streamable HTTP transport, guarded like every route; `stdio`: lines; `json_rpc`:
//!   what is malformed, and batches, for both.
//!
//! The messages themselves are rmcp's.

mod backend;
mod json_rpc;
mod route;
mod server;
mod stdio;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::web;
use rmcp::ServiceExt as _;

use super::daemon_error::DaemonError;
use super::guard::{Owner, Rights};
use super::journal::open_runs;
use super::state::State;
use prime_service::app::App;
use prime_service::metrics::Metrics;
use prime_service::telemetry::Telemetry;

use backend::Local;
pub use backend::{Backend, EVENTS_MAX, ToolError, WAIT_MAX, Watch};
pub use route::configure;
pub use server::Server;
use stdio::Lines;

/// Why a conversation over stdio ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The daemon's own parts cannot be started.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The client's messages do not follow the protocol, or the conversation broke off; with the
    /// reason.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

/// Serves the tools over standard input and output until the client closes them.
///
/// # Errors
/// [`StdioError::Protocol`] when the first message is not one of the protocol.
pub async fn serve_stdio(backend: Arc<dyn Backend>) -> Result<(), StdioError> {
    let failed = |error: &dyn std::fmt::Display| StdioError::Protocol(error.to_string());
    let service = Server::new(backend)
        .serve(Lines::new(tokio::io::stdin(), tokio::io::stdout()))
        .await
        .map_err(|error| failed(&error))?;
    service.waiting().await.map(drop).map_err(|error| failed(&error))
}

/// Serves the tools over standard input and output with runs in this process, which resumes those
/// that are open in its journal. Must be called within an actix system.
///
/// # Errors
/// When the journal cannot be opened, or as [`serve_stdio`].
pub async fn serve_stdio_here(app: App) -> Result<(), StdioError> {
    let metrics = Arc::new(Metrics::new(jiff::Timestamp::now()));
    let (journal, runs) = open_runs(app, metrics, None::<Telemetry>)?;
    let state =
        State::new(Arc::clone(&runs), BTreeMap::new(), None, None).map_err(DaemonError::Serve)?;
    journal.begin(&runs).map_err(DaemonError::Resume)?;
    actix::spawn(Arc::clone(&runs).run_deadlines());
    // The user who starts the program can read its journal.
    let everybody = Owner { name: String::new(), rights: Rights::Admin };
    let served = serve_stdio(Arc::new(Local::new(web::Data::new(state), everybody))).await;
    runs.park();
    journal.close();
    runs.app().shutdown();
    served
}
