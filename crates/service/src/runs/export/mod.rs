//! Runs that are over, in the forms of other tools: `otel` is a trace for an OpenTelemetry
//! collector, `dataset` a row beside those of `bench export`. (`bundle` is for other daemons.)

mod dataset;
mod otel;
mod pairs;

pub use dataset::DatasetRow;
pub use pairs::{ChatMessage, LeftOut, LeftOutStep, PairLine, PreferencePair, Preferred};
