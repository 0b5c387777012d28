//! Errors of a load test.

use prime_engine::EngineError;
use prime_journal::JournalError;
use prime_loadtest::MeasurementError;
use prime_service::app::AppError;
use prime_service::runs::RunError;

/// Why a load cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The measurement itself failed.
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    /// Even the shortest runs would need too much memory for their lines.
    #[error(
        "{trajectories} trajectories with a payload of {payload_bytes} bytes need at least {} MiB: \
         lower one of them",
        bytes >> 20
    )]
    TooLarge {
        /// Number of concurrent trajectories.
        trajectories: u32,
        /// Bytes added to each line.
        payload_bytes: usize,
        /// Memory that the lines need, in bytes.
        bytes: u64,
    },
    /// A process of the engine cannot be started.
    #[error("the engine process of the load could not be started: {0}")]
    Engine(EngineError),
    /// The configured agents cannot be started.
    #[error(transparent)]
    App(#[from] AppError),
    /// The journal of the load cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run was refused or failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file given for the journal exists; its path.
    #[error(
        "--journal {0}: the file exists, and a load test needs a journal of its own: name \
         a new file"
    )]
    JournalExists(String),
    /// A thread or a file of the load cannot be made.
    #[error("a part of the load could not be started")]
    Io(#[from] std::io::Error),
}
