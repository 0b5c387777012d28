//! Sections `log` and `telemetry`: what a process tells about itself, and to whom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Minimum level that is logged.
    pub level: LogLevel,
    /// `text` (for people) or `json` (one object per line).
    pub format: LogFormat,
}

/// Section `telemetry`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// URL of an OpenTelemetry collector for OTLP over HTTP, such as `http://127.0.0.1:4318`; the
    /// path `/v1/traces` is appended. Empty = off: no traces are sent.
    #[schemars(extend("format" = "http-address"))]
    pub otlp_endpoint: String,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of every logger")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The shape of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}
