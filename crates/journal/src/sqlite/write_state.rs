//! What the writer keeps between commits.

use super::batches::BatchBuffer;
use super::known_runs::KnownRuns;
use crate::compression::Packer;

/// The state of the writer apart from its connection.
pub(super) struct WriteState {
    pub(super) packer: Packer,
    pub(super) runs: KnownRuns,
    pub(super) batch: BatchBuffer,
}
