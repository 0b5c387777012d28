//! Why a pool of upstreams cannot be had.

/// A pool that cannot be used as it is configured. No message holds a key.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamsError {
    #[error("a pool of upstreams has no server: give it an entry in `upstreams` with `url` and `model`")]
    Empty,
    #[error("upstream {url}: {reason}")]
    Url { url: String, reason: String },
    #[error(
        "upstream {url}: `api_key_env` names the environment variable {variable}, which {reason}: set it to the key, or \
         leave `api_key_env` out"
    )]
    Key { url: String, variable: String, reason: &'static str },
    #[error("upstream {name} is in the pool twice: raise its `concurrent_max` instead")]
    Twice { name: String },
    #[error("`extra` {reason}")]
    Extra { reason: String },
    #[error("no HTTP client can be made: {0}: are the system's root certificates installed?")]
    Client(String),
    #[error("the thread of the upstreams cannot be started: {0}")]
    Thread(std::io::Error),
}
