//! Webhooks: which events go to which receivers (`endpoint`), signed as Standard Webhooks does
//! (`signature`), and when a failed message is sent again (`schedule`). What waits is in the
//! journal's outbox; `runs/deliveries.rs` sends it.

mod endpoint;
mod schedule;
mod signature;

pub use endpoint::{Answer, Endpoint, Webhooks};

/// A webhook that cannot be used as configured. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// Its secret cannot be read.
    #[error(
        "webhooks.{name}.secret_env = {variable:?}: the environment variable {reason}: set it to \
         `whsec_` and 24 to 64 random bytes in base64"
    )]
    Secret {
        /// The webhook's name.
        name: String,
        /// The environment variable.
        variable: String,
        /// What is wrong with it, as a clause.
        reason: String,
    },
    /// Its secret or its URL cannot be used.
    #[error("webhooks.{name}.{key} {reason}")]
    Value {
        /// The webhook's name.
        name: String,
        /// The option.
        key: &'static str,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// Its HTTP client cannot be made.
    #[error(
        "webhooks.{name}: cannot create an HTTP client: {reason}: are the system's root \
         certificates installed?"
    )]
    Client {
        /// The webhook's name.
        name: String,
        /// The client's message.
        reason: String,
    },
}
