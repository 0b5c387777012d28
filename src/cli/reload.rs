//! Reloads the configuration of a running daemon on SIGHUP or `POST /v1/reload`.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::log::LogControl;
use super::{Configuration, notify};
use prime_daemon::{Reload, ReloadRequest, Reloaded, Reloads};
use prime_settings::Settings;

/// Handles SIGHUP and the daemon's reload requests from now on, through the returned channels. Must
/// be called within an actix system.
///
/// `log.level` takes effect at once; agents, engines, limits of runs, presets, cells,
/// `server.queue_max`, `server.allow_*` and `journal.keep_*` with the next run; the rest of
/// `server` and `journal` with the next start. An invalid configuration is logged and changes
/// nothing.
pub fn listen(configuration: Configuration, log: LogControl) -> Reloads {
    let (reloads, settings) = mpsc::channel(1);
    let (wanted, requests) = mpsc::channel(1);
    let hangups = signal(SignalKind::hangup());
    if let Err(error) = &hangups {
        tracing::warn!(%error, "SIGHUP cannot be handled: reload with POST /v1/reload");
    }

    let reloader = Reloader { configuration, log, reloads };
    actix::spawn(reloader.run(hangups.ok(), requests));
    Reloads { settings, requests: Some(wanted) }
}

/// Waits for a signal; forever without a handler.
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
    async fn run(self, mut hangups: Option<Signal>, mut requests: mpsc::Receiver<ReloadRequest>) {
        loop {
            tokio::select! {
                is_open = hangup(&mut hangups) => {
                    if !is_open {
                        return;
                    }
                    // A failure has been logged.
                    drop(self.reload().await);
                }
                request = requests.recv() => {
                    let Some(ReloadRequest { reply }) = request else { return };
                    // The client may have disconnected.
                    drop(reply.send(self.reload().await));
                }
            }
        }
    }

    async fn reload(&self) -> Result<Reloaded, String> {
        notify::reloading();
        let result = self.read().await;
        notify::reloaded();
        result
    }

    async fn read(&self) -> Result<Reloaded, String> {
        let settings = self.configuration.load().map_err(|error| {
            tracing::error!("configuration not reloaded, the old one stays in effect: {error}");
            error.to_string()
        })?;

        let level = settings.log.level;
        let taken = self.hand_over(settings).await.inspect_err(|error| {
            tracing::error!("configuration not reloaded, the old agents stay: {error}");
        })?;
        // A configuration that was refused must not change the log either.
        self.log.set_level(level);
        tracing::info!(taken = ?taken.taken, at_next_start = ?taken.at_next_start,
            "configuration reloaded");
        Ok(taken)
    }

    /// Hands settings to the daemon and waits until they are in effect.
    async fn hand_over(&self, settings: Settings) -> Result<Reloaded, String> {
        let stopping = || "the daemon is stopping".to_owned();
        let (reply, taken) = oneshot::channel();
        self.reloads.send(Reload { settings, reply }).await.map_err(|_| stopping())?;
        taken.await.map_err(|_| stopping())?
    }
}
