//! Errors of a load test.

use prime_engine::EngineError;
use prime_journal::JournalError;
use prime_loadtest::MeasurementError;
use prime_service::app::AppError;
use prime_service::runs::RunError;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    #[error(
        "{trajectories} trajectories with a payload of {payload_bytes} bytes need at least {} MiB: \
         lower one of them",
        bytes >> 20
    )]
    TooLarge { trajectories: u32, payload_bytes: usize, bytes: u64 },
    #[error("the engine process of the load could not be started: {0}")]
    Engine(EngineError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(
        "--journal {0}: the file exists, and a load test needs a journal of its own: name \
         a new file"
    )]
    JournalExists(String),
    #[error("a part of the load could not be started")]
    Io(#[from] std::io::Error),
}
