//! The configuration of a running daemon, read again when SIGHUP asks for it.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::log::LogControl;
use super::{Configuration, notify};
use crate::daemon::Reload;
use crate::settings::Settings;

/// Listens to SIGHUP from now on, and obeys once the event loop turns: `log.level` counts at once, agents, engines,
/// limits of runs, presets and cells for the runs to come, and so do `server.queue_max`, `server.allow_*` and
/// `journal.keep_*`; what the listening server and the open journal are made of, from the next start. A configuration
/// with a mistake is logged, and nothing changes. The receiver is the daemon's. Must be called within an actix system.
pub fn on_hangup(configuration: Configuration, log: LogControl) -> mpsc::Receiver<Reload> {
    let (reloads, daemon) = mpsc::channel(1);
    match signal(SignalKind::hangup()) {
        Ok(hangups) => drop(actix::spawn(obey(hangups, configuration, log, reloads))),
        Err(error) => {
            tracing::warn!(%error, "SIGHUP will not be heard: restart the daemon to change its configuration");
        }
    }
    daemon
}

async fn obey(mut hangups: Signal, configuration: Configuration, log: LogControl, reloads: mpsc::Sender<Reload>) {
    while hangups.recv().await.is_some() {
        notify::reloading();
        match configuration.load() {
            Ok(settings) => {
                log.set_level(settings.log.level);
                match hand_over(settings, &reloads).await {
                    Ok(()) => tracing::info!("configuration read again: it counts for the runs to come"),
                    Err(error) => tracing::error!("the agents stay as they are: {error}"),
                }
            }
            Err(error) => tracing::error!("the configuration was not taken, everything stays as it is: {error}"),
        }
        notify::reloaded();
    }
}

/// Gives settings to the daemon, and waits until they count.
async fn hand_over(settings: Settings, reloads: &mpsc::Sender<Reload>) -> Result<(), String> {
    let stopping = || "the daemon is stopping".to_owned();
    let (reply, taken) = oneshot::channel();
    reloads.send(Reload { settings, reply }).await.map_err(|_| stopping())?;
    taken.await.map_err(|_| stopping())?
}
