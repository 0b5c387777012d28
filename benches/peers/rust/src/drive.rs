//! Sends all trajectories of a phase round twice: once to warm up, once to be timed.

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::report::{Measured, measured, process_time};
use crate::{Phase, Request};

/// Hands a request to the executor of a trio.
pub type Kick = Box<dyn Fn(Request) + Send + Sync>;

/// A Tokio runtime on this thread, or with as many workers as there are cores.
///
/// # Panics
/// If the system gives no threads.
#[must_use]
pub fn runtime(is_multi_thread: bool) -> Runtime {
    let mut builder =
        if is_multi_thread { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().build().expect("a runtime can be started")
}

/// Two laps through actors that are wired already.
pub async fn drive(
    kicks: &[Kick],
    phase: &Arc<Phase>,
    ended: &mut UnboundedReceiver<()>,
) -> Measured {
    let spec = phase.spec;

    // The lap that warms up; its samples are dropped.
    lap(kicks, phase, ended, 0, spec.warm).await;
    phase.take_samples();

    let (cpu, start) = (process_time(), Instant::now());
    lap(kicks, phase, ended, spec.warm, spec.warm + spec.steps).await;

    let mut samples = phase.take_samples();
    if !samples.is_empty() {
        // The first sample spans the gap between the laps.
        samples.remove(0);
    }

    measured(&spec, start, cpu, samples)
}

/// [`drive`] for actors that are threads.
pub fn drive_blocking(
    kicks: &[Kick],
    phase: &Arc<Phase>,
    ended: &mut UnboundedReceiver<()>,
) -> Measured {
    runtime(false).block_on(drive(kicks, phase, ended))
}

async fn lap(kicks: &[Kick], phase: &Phase, ended: &mut UnboundedReceiver<()>, from: u64, to: u64) {
    phase.begin_lap(to);
    for trajectory in 0..phase.spec.trajectories {
        kicks[trajectory as usize % kicks.len()](Request::first(trajectory, from));
    }
    ended.recv().await.expect("invariant: the phase holds the sender");
}
