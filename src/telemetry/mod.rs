//! Traces of runs for an OpenTelemetry collector, by the conventions for generative AI: a span for each run, one for
//! each step below it. Off unless `telemetry.otlp_endpoint` names a collector; nothing leaves the machine otherwise.

mod traceparent;

mod export;
mod spans;

pub use export::Telemetry;
pub use traceparent::{NotTraceParent, TraceParent};

/// Why there can be no telemetry.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("telemetry.otlp_endpoint = {endpoint:?}: {reason}; give the collector's address, as http://127.0.0.1:4318")]
    Endpoint { endpoint: String, reason: String },
}

/// A run that is traced, as its root span names it.
#[derive(Clone, Debug)]
pub struct TracedRun {
    /// The id that clients know.
    pub id: String,
    /// The slug of its task.
    pub task: String,
    /// The caller's place in its trace; `None` begins a trace.
    pub parent: Option<TraceParent>,
    /// When it began in this process.
    pub started: jiff::Timestamp,
}
