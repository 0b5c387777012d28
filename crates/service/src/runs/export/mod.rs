//! Runs that are over, in the forms of other tools: `otel` is a trace for an OpenTelemetry
//! collector, `dataset` a row beside those of `bench export`. (`bundle` is for other daemons.)

mod dataset;
mod otel;

pub use dataset::DatasetRow;
