//! Exports runs as OpenTelemetry traces, following the semantic conventions for generative AI: a
//! span per run, with a child per step. It is off unless `telemetry.otlp_endpoint` names a
//! collector; otherwise nothing leaves the machine.

mod export;
mod spans;
mod traceparent;

pub use export::{Telemetry, TelemetryError};
pub use spans::TracedRun;
pub use traceparent::{NotTraceParent, TraceParent};
