//! Why the process could not start.

use prime_agent_set::registry::RegistryError;
use prime_engine::EngineError;
use prime_models::CacheError;
use prime_settings::ModelMissing;

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The engine cannot be started.
    #[error("engine `{engine}`: {reason}")]
    Engine {
        /// Name of the engine in the configuration.
        engine: String,
        /// Why it cannot be started.
        reason: EngineError,
    },
    /// The file of the engine's model is missing.
    #[error("engine `{engine}`: {reason}")]
    Model {
        /// Name of the engine in the configuration.
        engine: String,
        /// Where the file was looked for.
        reason: ModelMissing,
    },
    /// The built-in model cannot be written to the cache.
    #[error("engine `{engine}`: {reason}")]
    ModelCache {
        /// Name of the engine in the configuration.
        engine: String,
        /// Why it cannot be written.
        reason: CacheError,
    },
    /// An adapter of an agent cannot be used.
    #[error("engine `{engine}`: {reason}")]
    Adapter {
        /// Name of the engine in the configuration.
        engine: String,
        /// The adapter, and what is wrong with it.
        reason: String,
    },
    /// An agent cannot be built.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
