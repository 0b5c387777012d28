//! One server of a pool: its addresses, its model, its key. What is fixed while the process runs.

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::HeaderValue;
use sha2::{Digest, Sha256};

use super::error::UpstreamsError;
use crate::settings;

/// See the module.
pub(super) struct Member {
    /// Host, port and model: who answered, in records and metrics.
    pub name: Arc<str>,
    /// Where it is asked.
    pub ask_url: Url,
    /// Where it is looked at.
    pub health_url: Url,
    pub model: String,
    pub concurrent_max: u32,
    pub weight: f64,
    /// Of the name, for the choice.
    pub hash: u64,
    key: Option<Key>,
}

/// Has no `Debug`, so that it cannot be logged by accident.
struct Key {
    text: String,
    header: HeaderValue,
}

impl Member {
    /// `path` is the one that is asked, below the server's address; `lookup` reads the environment.
    ///
    /// # Errors
    /// What is wrong with the address or the key.
    pub fn new(
        upstream: &settings::Upstream,
        path: &str,
        health_path: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UpstreamsError> {
        let base = base(&upstream.url)?;
        let below = |path: &str| {
            let mut url = base.clone();
            let folder = if path.starts_with('/') { "" } else { base.path().trim_end_matches('/') };
            url.set_path(&format!("{folder}/{}", path.trim_start_matches('/')));
            url
        };
        let host = base.host_str().unwrap_or_default();
        let port = base.port_or_known_default().unwrap_or_default();
        let name = format!("{host}:{port} {}", upstream.model);
        let identity = Sha256::digest(format!("{base} {}", upstream.model));
        let key = match &upstream.api_key_env {
            Some(variable) => Some(Key::read(variable, &upstream.url, lookup)?),
            None => None,
        };
        Ok(Self {
            name: name.into(),
            ask_url: below(path),
            health_url: below(health_path),
            model: upstream.model.clone(),
            concurrent_max: upstream.concurrent_max.max(1),
            weight: upstream.weight,
            hash: identity.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte)),
            key,
        })
    }

    /// The value of the header `Authorization`.
    pub fn authorization(&self) -> Option<HeaderValue> {
        self.key.as_ref().map(|key| key.header.clone())
    }

    /// The name with the path, where another server has the same host, port and model.
    pub fn longer_name(&self) -> Arc<str> {
        let (host, model) = self.name.split_once(' ').unwrap_or((&self.name, ""));
        format!("{host}{} {model}", self.ask_url.path()).into()
    }

    /// What no message may show.
    pub fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.text.as_str())
    }
}

impl Key {
    fn read(variable: &str, url: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, UpstreamsError> {
        let bad = |reason| UpstreamsError::Key { url: without_secrets(url), variable: variable.to_owned(), reason };
        let text = lookup(variable).ok_or_else(|| bad("is not set"))?.trim().to_owned();
        if text.is_empty() {
            return Err(bad("is empty"));
        }
        let header = HeaderValue::from_str(&format!("Bearer {text}"));
        let mut header = header.map_err(|_| bad("has characters that no header can have"))?;
        header.set_sensitive(true);
        Ok(Self { text, header })
    }
}

/// The address of a server, checked.
fn base(text: &str) -> Result<Url, UpstreamsError> {
    let bad = |reason: String| UpstreamsError::Url { url: without_secrets(text), reason };
    let url =
        Url::parse(text).map_err(|error| bad(format!("not an address ({error}): write it as http://host:port/v1")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("an address begins with http:// or https:// and a host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        let reason = "an address has no user, no `?` and no `#`: a key goes into the variable that `api_key_env` names";
        return Err(bad(reason.to_owned()));
    }
    Ok(url)
}

/// An address for a message: without a user before `@` and without what follows `?` or `#`.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.find("//"), url.rfind('@')) {
        (Some(slashes), Some(at)) if slashes < at => format!("{}{}", &url[..slashes + 2], &url[at + 1..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Upstream;

    fn upstream(url: &str) -> Upstream {
        let url = url.to_owned();
        Upstream { url, model: "m/7b".to_owned(), api_key_env: None, concurrent_max: 4, weight: 1.0 }
    }

    fn member(upstream: &Upstream, health_path: &str, key: Option<&str>) -> Result<Member, UpstreamsError> {
        Member::new(upstream, "chat/completions", health_path, |name| {
            key.filter(|_| name == "SOME_KEY").map(str::to_owned)
        })
    }

    #[test]
    fn paths_are_put_below_the_address_and_names_are_short() {
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
            ("http://[::1]:9", "models", "[::1]:9 m/7b", "http://[::1]:9/chat/completions", "http://[::1]:9/models"),
        ] {
            let member = member(&upstream(url), health_path, None).ok().unwrap();
            assert_eq!(&*member.name, name);
            assert_eq!((member.ask_url.as_str(), member.health_url.as_str()), (ask, health));
        }
    }

    #[test]
    fn bad_addresses_are_refused_and_their_secrets_not_shown() {
        for (url, shown) in [
            ("http://", "upstream http://: not an address"),
            ("ftp://host/v1", "upstream ftp://host/v1: an address begins with http://"),
            ("http://me:hush@host/v1", "upstream http://host/v1: an address has no user"),
            ("http://host/v1?key=hush", "upstream http://host/v1: an address has no user"),
            ("http://me:hush@ho st/v1#hush", "upstream http://ho st/v1: not an address"),
        ] {
            let message = member(&upstream(url), "models", None).err().unwrap().to_string();
            assert!(message.starts_with(shown) && !message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn a_key_comes_from_its_variable_or_is_missed() {
        let mut upstream = upstream("http://127.0.0.1:1/v1");
        upstream.api_key_env = Some("SOME_KEY".to_owned());
        let header = member(&upstream, "models", Some(" abc\n")).ok().unwrap().authorization().unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer abc");
        assert_eq!(format!("{header:?}"), "Sensitive");
        for (key, reason) in [(None, "is not set"), (Some(" "), "is empty"), (Some("a\nhush"), "has characters")] {
            let message = member(&upstream, "models", key).err().unwrap().to_string();
            let expected = format!(
                "upstream http://127.0.0.1:1/v1: `api_key_env` names the environment variable SOME_KEY, which {reason}"
            );
            assert!(message.starts_with(&expected) && !message.contains("hush"), "{message}");
        }
    }
}
