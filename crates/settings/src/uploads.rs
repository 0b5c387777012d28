//! What clients may upload, and what the code in it may use. No logic here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `uploads`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    /// Maximum tasks that one key may have uploaded (without keys: all clients together); further
    /// ones are refused with status 409. 0 = no uploads.
    #[schemars(range(min = 0, max = 10_000))]
    pub key_tasks_max: u32,
    /// Maximum bytes of all modules of one key. Versions that were replaced or deleted count until
    /// an hour has passed and no open run uses them.
    #[schemars(range(min = 1_024, max = 1_000_000_000_000_u64))]
    pub key_bytes_max: u64,
    /// Maximum bytes of one module; a larger one is refused with status 413.
    #[schemars(range(min = 1_024, max = 16_777_216))]
    pub module_bytes_max: u64,
    /// Fuel of one answer: about one unit for each instruction. An answer that takes more fails its
    /// turn.
    #[schemars(range(min = 1_000, max = 100_000_000_000_u64))]
    pub fuel_max: u64,
    /// Maximum bytes of a module's memory while it answers.
    #[schemars(range(min = 65_536, max = 4_294_967_296_u64))]
    pub memory_bytes_max: u64,
    /// Maximum bytes of an answer, and with it of a state.
    #[schemars(range(min = 256, max = 67_108_864))]
    pub line_bytes_max: u64,
    /// Number of threads that compute the answers of all uploaded modules. Keys take turns, and one
    /// key occupies all of them but one.
    #[schemars(range(min = 1, max = 256))]
    pub threads: u32,
}
