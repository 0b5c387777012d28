//! Why a load test has no figures.

use crate::app::AppError;
use crate::runs::RunError;
use prime_engine::EngineError;
use prime_journal::JournalError;

/// Why a load test has no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("trajectory {trajectory} of the load ended as {outcome}: the figures would be about something else")]
    Ended { trajectory: u32, outcome: String },
    #[error("no step was decided in the time that is measured: give a longer --duration, or --steps")]
    NoSteps,
    #[error("the runtime ended before the load")]
    Gone,
    #[error(
        "{trajectories} trajectories with a payload of {payload_bytes} bytes would need {} MiB or more: lower one",
        bytes >> 20
    )]
    TooLarge { trajectories: u32, payload_bytes: usize, bytes: u64 },
    #[error("the engine's process for the load could not be started: {0}")]
    Engine(EngineError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("--journal {0}: the file is there already, and a load test writes a journal of its own: name a new file")]
    JournalExists(String),
    #[error("a part of the load could not be started")]
    Io(#[from] std::io::Error),
}
