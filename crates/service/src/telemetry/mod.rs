//! Exports runs as OpenTelemetry traces, following the semantic conventions for generative AI: a
//! span per run, with a child per step. It is off unless `telemetry.otlp_endpoint` names a
//! collector; otherwise nothing leaves the machine.

mod traceparent;

mod export;
mod spans;

pub use export::Telemetry;
pub use traceparent::{NotTraceParent, TraceParent};

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error(
        "telemetry.otlp_endpoint = {endpoint:?}: {reason}; set it to the collector's address, such as http://127.0.0.1:4318"
    )]
    Endpoint { endpoint: String, reason: String },
}

/// A traced run, as its root span names it.
#[derive(Clone, Debug)]
pub struct TracedRun {
    /// The id that clients know.
    pub id: String,
    /// The slug of its task.
    pub task: String,
    /// The caller's span; `None` starts a new trace.
    pub parent: Option<TraceParent>,
    /// When it started in this process.
    pub started: jiff::Timestamp,
}
