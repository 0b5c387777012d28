//! Tells systemd how the daemon stands, as a unit of `Type=notify` does. Without `NOTIFY_SOCKET`, which only systemd
//! sets, nothing is told to anybody. The crate reads the variables that systemd gives.

use std::net::SocketAddr;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

/// Says something, or logs that it could not be said: the daemon works without anybody who listens.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd cannot be told: the socket that NOTIFY_SOCKET names does not answer");
    }
}

/// Once the event loop turns, says that the daemon takes requests at this address; from then on the watchdog is fed, if
/// systemd has one, and a signal that ends the daemon is told. Must be called within an actix system, right before the
/// server is run: it listens to signals when it is first polled, and one that came before it did would be lost.
pub fn ready(address: SocketAddr) {
    actix::spawn(async move {
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            match signal(kind) {
                Ok(mut signals) => drop(actix::spawn(async move {
                    if signals.recv().await.is_some() {
                        stopping();
                    }
                })),
                Err(error) => tracing::warn!(%error, "systemd will not be told when the daemon stops"),
            }
        }
        tell(&[NotifyState::Ready, NotifyState::Status(&format!("takes runs on http://{address}"))]);
        if let Some(limit) = sd_notify::watchdog_enabled() {
            watchdog(limit).await;
        }
    });
}

/// The daemon ends its runs and then itself.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("ends its runs")]);
}

/// The configuration is read again; [`reloaded`] must follow, also when it was refused.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "systemd cannot be told of a reload: there is no monotonic clock"),
    }
}

/// The configuration was read again, or the old one stays.
pub fn reloaded() {
    tell(&[NotifyState::Ready]);
}

/// Says twice within the limit that the event loop turns: when it hangs, systemd ends the process and starts another.
async fn watchdog(limit: Duration) {
    // A period of zero would be none.
    let mut ticks = interval((limit / 2).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}
