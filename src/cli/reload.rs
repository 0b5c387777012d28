//! The configuration of a running daemon, read again when SIGHUP asks for it.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::log::LogControl;
use super::{Configuration, notify};

/// Listens to SIGHUP from now on, and obeys once the event loop turns. `log.level` counts at once, everything else from
/// the next start. A configuration with a mistake is logged, and nothing changes. Must be called within an actix system.
pub fn on_hangup(configuration: Configuration, log: LogControl) {
    match signal(SignalKind::hangup()) {
        Ok(hangups) => drop(actix::spawn(obey(hangups, configuration, log))),
        Err(error) => tracing::warn!(%error, "SIGHUP will not be heard: restart the daemon to change its log.level"),
    }
}

async fn obey(mut hangups: Signal, configuration: Configuration, log: LogControl) {
    while hangups.recv().await.is_some() {
        notify::reloading();
        match configuration.load() {
            Ok(settings) => {
                log.set_level(settings.log.level);
                tracing::info!("configuration read again: log.level counts now, the rest after a restart");
            }
            Err(error) => tracing::error!("the configuration was not taken, everything stays as it is: {error}"),
        }
        notify::reloaded();
    }
}
