//! Notifies systemd of the daemon's state, for units of `Type=notify`. Without `NOTIFY_SOCKET`,
//! which systemd sets, it does nothing.

use std::net::SocketAddr;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::SignalKind;
use tokio::time::{MissedTickBehavior, interval};

use prime_daemon::stop_signals::StopSignal;

/// Notifies systemd. A failure is logged; the daemon does not depend on it.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(
            %error,
            "cannot notify systemd: the socket in NOTIFY_SOCKET does not answer"
        );
    }
}

/// Once the event loop runs, reports that the daemon is ready at this address; from then on feeds
/// systemd's watchdog, if there is one, and reports a signal that stops the daemon. Must be called
/// within an actix system, right before the server runs: the server handles signals from its first
/// poll, and an earlier one would be lost.
pub fn ready(address: SocketAddr) {
    actix::spawn(async move {
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            match StopSignal::listen(kind) {
                Ok(mut signals) => drop(actix::spawn(async move {
                    signals.recv().await;
                    stopping();
                })),
                Err(error) => {
                    tracing::warn!(%error, "systemd will not be notified when the daemon stops");
                }
            }
        }

        tell(&[
            NotifyState::Ready,
            NotifyState::Status(&format!("takes runs on http://{address}")),
        ]);

        if let Some(limit) = sd_notify::watchdog_enabled() {
            watchdog(limit).await;
        }
    });
}

/// The daemon is ending its runs, and then exits.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("ends its runs")]);
}

/// A reload starts; [`reloaded`] must follow, even if the configuration is refused.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => {
            tracing::warn!(%error, "cannot notify systemd of a reload: there is no monotonic clock");
        }
    }
}

/// A reload is over, successful or not.
pub fn reloaded() {
    tell(&[NotifyState::Ready]);
}

/// Reports twice within the limit that the event loop runs: if it hangs, systemd restarts the
/// process.
async fn watchdog(limit: Duration) {
    // `interval` panics on zero.
    let mut ticks = interval((limit / 2).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}
