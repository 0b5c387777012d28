//! `prime-agents health`: asks a daemon whether it lives, for those who watch over it.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use ureq::Agent;

use super::Configuration;

/// Longest wait for the answer. A daemon that needs longer is not well.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Args)]
pub struct HealthArguments {
    /// The daemon, as http://HOST:PORT. Without it, the address of the configuration (server.bind).
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Ask whether a run handed in now would go on, and not only whether the process answers.
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    configuration: Configuration,
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

pub fn health(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let daemon = match &arguments.url {
        Some(url) if url.starts_with("http://") => url.trim_end_matches('/').to_owned(),
        Some(url) => bail!("--url {url}: give http://HOST:PORT, as the daemon printed it when it was ready"),
        None => reachable(arguments.configuration.load()?.server.bind)?,
    };
    let url = format!("{daemon}/{}", if arguments.ready { "readyz" } else { "livez" });
    // A proxy would answer for the daemon.
    let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).proxy(None).build();
    match Agent::new_with_config(config).get(&url).call() {
        Ok(mut answer) => {
            let status = answer.status();
            let body =
                answer.body_mut().read_to_string().with_context(|| format!("{url} answered {status} and broke off"))?;
            drop(writeln!(std::io::stdout(), "{}", body.trim_end()));
            Ok(ExitCode::from(u8::from(!status.is_success())))
        }
        Err(error) => {
            eprintln!("{url} does not answer: {error}");
            Ok(ExitCode::FAILURE)
        }
    }
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
}
