//! Why the process could not start.

use prime_agent_set::registry::RegistryError;
use prime_engine::EngineError;
use prime_models::CacheError;
use prime_settings::ModelMissing;

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("engine `{engine}`: {reason}")]
    Engine { engine: String, reason: EngineError },
    #[error("engine `{engine}`: {reason}")]
    Model { engine: String, reason: ModelMissing },
    #[error("engine `{engine}`: {reason}")]
    ModelCache { engine: String, reason: CacheError },
    #[error("engine `{engine}`: {reason}")]
    Adapter { engine: String, reason: String },
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
