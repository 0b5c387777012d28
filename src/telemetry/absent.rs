//! What stands for telemetry in a build without it: there is never one.

use std::sync::Arc;

use super::{TelemetryError, TracedRun};
use crate::runtime::Observer;

/// Nothing has this type: this build has no telemetry.
pub enum Telemetry {}

impl Telemetry {
    /// `None` for an empty endpoint.
    ///
    /// # Errors
    /// For any other: it cannot be reached from this build.
    pub fn start(endpoint: &str) -> Result<Option<Self>, TelemetryError> {
        if endpoint.is_empty() { Ok(None) } else { Err(TelemetryError::NotBuilt { endpoint: endpoint.to_owned() }) }
    }

    /// Never called.
    pub fn observer(&self, _: &TracedRun, _: Arc<dyn Observer>) -> Arc<dyn Observer> {
        match *self {}
    }

    /// Never called.
    pub fn shutdown(&self) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_cannot_be_reached_from_this_build_is_refused() {
        assert!(Telemetry::start("").unwrap().is_none());
        let Err(error) = Telemetry::start("http://127.0.0.1:4318") else { panic!("it was taken") };
        for part in ["telemetry.otlp_endpoint", "http://127.0.0.1:4318", "--features otel"] {
            assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
        }
    }
}
