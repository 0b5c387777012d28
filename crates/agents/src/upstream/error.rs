//! Why a pool of upstreams cannot be opened.

/// A pool that cannot be used as configured. No message contains a key.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("the pool has no server: add an entry to `upstreams` with `url` and `model`")]
    Empty,
    #[error("upstream {url}: {reason}")]
    Url { url: String, reason: String },
    #[error(
        "upstream {url}: `api_key_env` names the environment variable {variable}, which {reason}: \
         set it to the key, or remove `api_key_env`"
    )]
    Key { url: String, variable: String, reason: &'static str },
    #[error("upstream {name} is in the pool twice: raise its `concurrent_max` instead")]
    Duplicate { name: String },
    #[error("`extra` {reason}")]
    Extra { reason: String },
    #[error("cannot create an HTTP client: {0}: are the system's root certificates installed?")]
    Client(String),
    #[error("cannot start the upstream thread: {0}")]
    Thread(std::io::Error),
}
