//! The configuration of a running daemon, read again when SIGHUP or a request asks for it.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::log::LogControl;
use super::{Configuration, notify};
use crate::daemon::{Reload, ReloadRequest, Reloaded, Reloads};
use crate::settings::Settings;

/// Listens to SIGHUP from now on, and obeys it, and requests of the daemon, once the event loop turns: `log.level` counts
/// at once, agents, engines, limits of runs, presets and cells for the runs to come, and so do `server.queue_max`,
/// `server.allow_*` and `journal.keep_*`; what the listening server and the open journal are made of, from the next start.
/// A configuration with a mistake is logged, and nothing changes. The ends are the daemon's. Must be called within an actix
/// system.
pub fn listen(configuration: Configuration, log: LogControl) -> Reloads {
    let (reloads, settings) = mpsc::channel(1);
    let (wanted, requests) = mpsc::channel(1);
    let hangups = signal(SignalKind::hangup());
    if let Err(error) = &hangups {
        tracing::warn!(%error, "SIGHUP will not be heard: ask the daemon with POST /v1/reload");
    }
    let reloader = Reloader { configuration, log, reloads };
    actix::spawn(reloader.obey(hangups.ok(), requests));
    Reloads { settings, requests: Some(wanted) }
}

/// Waits for a signal; for ever where there are none.
async fn hangup(hangups: &mut Option<Signal>) -> bool {
    match hangups {
        Some(hangups) => hangups.recv().await.is_some(),
        None => std::future::pending().await,
    }
}

struct Reloader {
    configuration: Configuration,
    log: LogControl,
    reloads: mpsc::Sender<Reload>,
}

impl Reloader {
    async fn obey(self, mut hangups: Option<Signal>, mut requests: mpsc::Receiver<ReloadRequest>) {
        loop {
            tokio::select! {
                is_heard = hangup(&mut hangups) => {
                    if !is_heard {
                        return;
                    }
                    // It is logged.
                    drop(self.reload().await);
                }
                request = requests.recv() => {
                    let Some(ReloadRequest { reply }) = request else { return };
                    // Whoever asked may be gone.
                    drop(reply.send(self.reload().await));
                }
            }
        }
    }

    async fn reload(&self) -> Result<Reloaded, String> {
        notify::reloading();
        let result = self.read_again().await;
        notify::reloaded();
        result
    }

    async fn read_again(&self) -> Result<Reloaded, String> {
        let settings = self.configuration.load().map_err(|error| {
            tracing::error!("the configuration was not taken, everything stays as it is: {error}");
            error.to_string()
        })?;
        let level = settings.log.level;
        let taken = self.hand_over(settings).await.inspect_err(|error| {
            tracing::error!("the agents stay as they are: {error}");
        })?;
        self.log.set_level(level);
        tracing::info!(taken = ?taken.taken, at_next_start = ?taken.at_next_start,
            "configuration read again: it counts for the runs to come");
        Ok(taken)
    }

    /// Gives settings to the daemon, and waits until they count.
    async fn hand_over(&self, settings: Settings) -> Result<Reloaded, String> {
        let stopping = || "the daemon is stopping".to_owned();
        let (reply, taken) = oneshot::channel();
        self.reloads.send(Reload { settings, reply }).await.map_err(|_| stopping())?;
        taken.await.map_err(|_| stopping())?
    }
}
