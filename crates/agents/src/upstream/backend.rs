//! One server of a pool as configured: URLs, model, key. Its mutable state is in
//! `backend_state.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Url;
use reqwest::header::HeaderValue;
use sha2::{Digest, Sha256};

use super::error::PoolError;

pub(super) struct Backend {
    /// Host, port and model, for records and metrics.
    pub name: Arc<str>,
    /// The server's URL as configured.
    pub base: Url,
    pub completion_url: Url,
    pub health_url: Url,
    pub model: String,
    pub concurrent_max: u32,
    pub weight: f64,
    /// A hash of URL and model, for load balancing.
    pub hash: u64,
    key: Option<Key>,
    /// Set once the log has said that another model answers.
    told_of_other_model: AtomicBool,
}

/// Deliberately without `Debug`, so that it cannot be logged by accident.
struct Key {
    text: String,
    header: HeaderValue,
}

impl Backend {
    /// `path` is the endpoint, relative to the server's URL, or with `../` beside its `/v1`;
    /// `lookup` reads the environment.
    ///
    /// # Errors
    /// The URL or the key is invalid.
    pub fn new(
        upstream: &prime_settings::Upstream,
        path: &str,
        health_path: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PoolError> {
        let base = base(&upstream.url)?;

        let below = |path: &str| {
            let mut url = base.clone();
            let folder = base.path().trim_end_matches('/');
            let (folder, path) = match (path.strip_prefix('/'), path.strip_prefix("../")) {
                (Some(path), _) => ("", path),
                (None, Some(path)) => (folder.strip_suffix("/v1").unwrap_or(folder), path),
                (None, None) => (folder, path),
            };
            url.set_path(&format!("{folder}/{}", path.trim_start_matches('/')));
            url
        };

        let host = base.host_str().unwrap_or_default();
        let port = base.port_or_known_default().unwrap_or_default();
        let name = format!("{host}:{port} {}", upstream.model);
        // Not the standard hasher: affinities must stay where their prefixes are cached, also in
        // the next process and with another compiler.
        let identity = Sha256::digest(format!("{base} {}", upstream.model));

        let key = match &upstream.api_key_env {
            Some(variable) => Some(Key::read(variable, &upstream.url, lookup)?),
            None => None,
        };

        Ok(Self {
            name: name.into(),
            completion_url: below(path),
            health_url: below(health_path),
            base: base.clone(),
            model: upstream.model.clone(),
            concurrent_max: upstream.concurrent_max.max(1),
            weight: upstream.weight,
            hash: identity.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte)),
            key,
            told_of_other_model: AtomicBool::new(false),
        })
    }

    /// The value of the header `Authorization`.
    pub fn authorization(&self) -> Option<HeaderValue> {
        self.key.as_ref().map(|key| key.header.clone())
    }

    /// The name with the URL's path, for servers that share host, port and model.
    pub fn qualified_name(&self) -> Arc<str> {
        let (host, model) = self.name.split_once(' ').unwrap_or((&self.name, ""));
        format!("{host}{} {model}", self.completion_url.path()).into()
    }

    /// The whole URL and the model: what no other server of a pool has.
    pub fn full_name(&self) -> Arc<str> {
        format!("{} {}", self.completion_url, self.model).into()
    }

    /// Logs once that the server answers with another model than it was asked for.
    pub fn tell_of_other_model(&self, other: &str) {
        if !self.told_of_other_model.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                upstream = &*self.name,
                "the server answers as `{other}`, not as `{}`: correct `model`, or load that model",
                self.model
            );
        }
    }

    /// The key, to be redacted from messages.
    pub fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.text.as_str())
    }
}

impl Key {
    fn read(
        variable: &str,
        url: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PoolError> {
        let bad = |reason| PoolError::Key {
            url: without_secrets(url),
            variable: variable.to_owned(),
            reason,
        };
        let text = lookup(variable).ok_or_else(|| bad("is not set"))?.trim().to_owned();
        if text.is_empty() {
            return Err(bad("is empty"));
        }

        let header = HeaderValue::from_str(&format!("Bearer {text}"));
        let mut header = header.map_err(|_| bad("has characters that a header cannot contain"))?;
        // `Debug` then hides the value.
        header.set_sensitive(true);
        Ok(Self { text, header })
    }
}

/// Parses and checks a server's URL.
fn base(text: &str) -> Result<Url, PoolError> {
    let bad = |reason: String| PoolError::Url { url: without_secrets(text), reason };

    let url = Url::parse(text)
        .map_err(|error| bad(format!("not a URL ({error}): write it as http://host:port/v1")))?;

    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("a URL must begin with http:// or https:// and a host".to_owned()));
    }

    // Messages and metrics show URLs, so nothing secret may be in them.
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        let reason = "a URL must have no user, no `?` and no `#`: put the key into the variable \
                      that `api_key_env` names";
        return Err(bad(reason.to_owned()));
    }
    Ok(url)
}

/// A URL for messages: without user info, query and fragment.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.find("//"), url.rfind('@')) {
        (Some(slashes), Some(at)) if slashes < at => {
            format!("{}{}", &url[..slashes + 2], &url[at + 1..])
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_settings::Upstream;

    fn upstream(url: &str) -> Upstream {
        let url = url.to_owned();
        Upstream {
            url,
            model: "m/7b".to_owned(),
            api_key_env: None,
            concurrent_max: 4,
            weight: 1.0,
        }
    }

    fn backend(
        upstream: &Upstream,
        health_path: &str,
        key: Option<&str>,
    ) -> Result<Backend, PoolError> {
        Backend::new(upstream, "chat/completions", health_path, |name| {
            key.filter(|_| name == "SOME_KEY").map(str::to_owned)
        })
    }

    #[test]
    fn paths_are_joined_to_the_url_and_names_are_short() {
        for (url, health_path, name, ask, health) in [
            (
                "http://127.0.0.1:8080/v1",
                "models",
                "127.0.0.1:8080 m/7b",
                "http://127.0.0.1:8080/v1/chat/completions",
                "http://127.0.0.1:8080/v1/models",
            ),
            (
                "https://api.example.org/openai/v1/",
                "/health",
                "api.example.org:443 m/7b",
                "https://api.example.org/openai/v1/chat/completions",
                "https://api.example.org/health",
            ),
            (
                "http://[::1]:9",
                "models",
                "[::1]:9 m/7b",
                "http://[::1]:9/chat/completions",
                "http://[::1]:9/models",
            ),
        ] {
            let backend = backend(&upstream(url), health_path, None).ok().unwrap();
            assert_eq!(&*backend.name, name);
            assert_eq!(
                (backend.completion_url.as_str(), backend.health_url.as_str()),
                (ask, health)
            );
        }
    }

    #[test]
    fn invalid_urls_are_refused_without_revealing_secrets() {
        for (url, shown) in [
            ("http://", "upstream http://: not a URL"),
            ("ftp://host/v1", "upstream ftp://host/v1: a URL must begin with http://"),
            ("http://me:hush@host/v1", "upstream http://host/v1: a URL must have no user"),
            ("http://host/v1?key=hush", "upstream http://host/v1: a URL must have no user"),
            ("http://me:hush@ho st/v1#hush", "upstream http://ho st/v1: not a URL"),
        ] {
            let message = backend(&upstream(url), "models", None).err().unwrap().to_string();
            assert!(message.starts_with(shown) && !message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn a_key_comes_from_its_variable() {
        let mut upstream = upstream("http://127.0.0.1:1/v1");
        upstream.api_key_env = Some("SOME_KEY".to_owned());
        let header =
            backend(&upstream, "models", Some(" abc\n")).ok().unwrap().authorization().unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer abc");
        assert_eq!(format!("{header:?}"), "Sensitive");

        for (key, reason) in
            [(None, "is not set"), (Some(" "), "is empty"), (Some("a\nhush"), "has characters")]
        {
            let message = backend(&upstream, "models", key).err().unwrap().to_string();
            let expected = format!(
                "upstream http://127.0.0.1:1/v1: `api_key_env` names the environment variable \
                 SOME_KEY, which {reason}"
            );
            assert!(message.starts_with(&expected) && !message.contains("hush"), "{message}");
        }
    }
}
