//! Where the daemon of a client's command is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::bail;
use clap::Args;
use reqwest::Url;

use super::Configuration;

/// The variable of the environment that has the key. An argument would show in the list of
/// processes.
pub const KEY_VARIABLE: &str = "PRIME_API_KEY";

/// The key of the environment, if there is one.
///
/// # Errors
/// When it contains characters that a key cannot have.
pub fn key() -> anyhow::Result<Option<String>> {
    let key = std::env::vars_os().find(|(name, _)| name == KEY_VARIABLE).map(|(_, key)| key);
    let Some(key) = key.filter(|key| !key.is_empty()) else { return Ok(None) };

    let visible = key.to_str().filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    match visible {
        Some(key) => Ok(Some(key.to_owned())),
        None => bail!(
            "{KEY_VARIABLE}: a key has visible ASCII characters only, and this has others: set it \
             again"
        ),
    }
}

#[derive(Args)]
pub struct Remote {
    /// The daemon, as http://HOST:PORT. Without it, the address of the configuration (server.bind).
    /// Repeatable for daemons that share one journal: the next one is asked when one does not
    /// answer
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    #[command(flatten)]
    configuration: Configuration,
}

impl Remote {
    /// The configuration of the command itself.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The daemons' URLs, at least one, without trailing slashes.
    ///
    /// # Errors
    /// When a given URL is not a daemon's, or the configuration does not say where a daemon is.
    pub fn bases(&self) -> anyhow::Result<Vec<String>> {
        if self.urls.is_empty() {
            return Ok(vec![reachable(self.configuration.load()?.server.bind)?]);
        }
        self.urls.iter().map(|url| given(url)).collect()
    }

    /// The only URL, for what is asked of one daemon.
    ///
    /// # Errors
    /// Like [`Remote::bases`], and when there are several.
    pub fn base(&self) -> anyhow::Result<String> {
        match <[String; 1]>::try_from(self.bases()?) {
            Ok([base]) => Ok(base),
            Err(_) => bail!("--url: give one, because this asks one daemon"),
        }
    }
}

/// The URL that `--url` gives, without a trailing slash.
///
/// # Errors
/// When it cannot be a daemon's.
pub fn given(url: &str) -> anyhow::Result<String> {
    if !is_http(url) {
        bail!("--url {url}: give http://HOST:PORT, as the daemon printed it when it was ready");
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// True if this can be a daemon's URL: plain HTTP, and nothing after the path.
fn is_http(url: &str) -> bool {
    let Ok(parsed) = Url::parse(url) else { return false };
    url.starts_with("http://")
        && parsed.host_str().is_some_and(|host| !host.is_empty())
        && parsed.query().is_none()
}

/// Where a daemon that is bound there is reached from the same machine.
fn reachable(bind: SocketAddr) -> anyhow::Result<String> {
    if bind.port() == 0 {
        bail!("server.bind = {bind} lets the daemon take any port: say with --url which it took");
    }

    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}", SocketAddr::new(ip, bind.port())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_asked_where_it_can_be_reached() {
        let rows = [
            ("127.0.0.1:7433", "http://127.0.0.1:7433"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
            ("10.1.2.3:80", "http://10.1.2.3:80"),
        ];
        for (bind, url) in rows {
            assert_eq!(reachable(bind.parse().unwrap()).unwrap(), url);
        }
        assert!(reachable("0.0.0.0:0".parse().unwrap()).unwrap_err().to_string().contains("--url"));
    }

    #[test]
    fn only_urls_of_plain_http_are_taken() {
        for url in
            ["http://localhost", "http://127.0.0.1:7433/", "http://[::1]:80", "http://proxy/agents"]
        {
            assert!(is_http(url), "{url}");
        }
        for url in [
            "",
            "localhost:7433",
            "https://localhost",
            "http://",
            "http://:80",
            "http://a/?b",
            "http://a b",
        ] {
            assert!(!is_http(url), "{url}");
        }
    }
}
