//! Why a pool of upstreams cannot be opened.

/// A pool that cannot be used as configured. No message contains a key.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The pool has no servers.
    #[error("the pool has no server: add an entry to `upstreams` with `url` and `model`")]
    Empty,
    /// A server's URL cannot be used.
    #[error("upstream {url}: {reason}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A server's key cannot be read.
    #[error(
        "upstream {url}: `api_key_env` names the environment variable {variable}, which {reason}: \
         set it to the key, or remove `api_key_env`"
    )]
    Key {
        /// The server's URL.
        url: String,
        /// The environment variable that should have the key.
        variable: String,
        /// What is wrong with it, as a clause.
        reason: &'static str,
    },
    /// Two servers of the pool have the same URL and model.
    #[error("upstream {name} is in the pool twice: raise its `concurrent_max` instead")]
    Duplicate {
        /// The server's name.
        name: String,
    },
    /// The additional request fields cannot be used.
    #[error("`extra` {reason}")]
    Extra {
        /// What is wrong with them, as a clause.
        reason: String,
    },
    /// The HTTP client cannot be created, with its message.
    #[error("cannot create an HTTP client: {0}: are the system's root certificates installed?")]
    Client(String),
    /// The pool's thread cannot be started.
    #[error("cannot start the upstream thread: {0}")]
    Thread(std::io::Error),
}
