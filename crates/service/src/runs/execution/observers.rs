//! The observers of a run besides its recorder: metrics, spans for a collector, and those that the
//! embedding program adds.

use std::sync::{Arc, OnceLock};

use super::recorder::Recorder;
use crate::metrics::Metrics;
use crate::runs::live::live_run::LiveRun;
use crate::runs::spec::RunSpec;
use crate::telemetry::{Telemetry, TracedRun};
use prime_bench::tasks::Problem;
use prime_runtime::{Observer, Watched};

/// Wraps the observer that records a run.
pub type WrapObserver = Box<dyn Fn(&RunSpec, Arc<dyn Observer>) -> Arc<dyn Observer> + Send + Sync>;

/// Makes the observer of each run.
pub struct Observers {
    metrics: Arc<Metrics>,
    telemetry: Option<Telemetry>,
    wrap: OnceLock<WrapObserver>,
}

impl Observers {
    pub fn new(metrics: Arc<Metrics>, telemetry: Option<Telemetry>) -> Self {
        Self { metrics, telemetry, wrap: OnceLock::new() }
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Wraps the observers of all new runs. Only the first call has an effect.
    pub fn wrap_with(&self, wrap: WrapObserver) {
        drop(self.wrap.set(wrap));
    }

    /// The observer of a run that starts at `now_ms`, around its recorder.
    pub fn of(
        &self,
        live: &LiveRun,
        problem: &dyn Problem,
        recorder: Recorder,
        now_ms: u64,
    ) -> Arc<dyn Observer> {
        let observer = Arc::new(Watched::new(self.metrics.run(problem.spec()), Arc::new(recorder)));
        let observer = self.traced(live, observer, now_ms);
        match self.wrap.get() {
            Some(wrap) => wrap(&live.spec, observer),
            None => observer,
        }
    }

    /// Adds the export of spans, where the configuration names a collector.
    fn traced(
        &self,
        live: &LiveRun,
        observer: Arc<dyn Observer>,
        now_ms: u64,
    ) -> Arc<dyn Observer> {
        let Some(telemetry) = &self.telemetry else { return observer };
        let run = TracedRun {
            id: live.stream.id.clone(),
            task: live.spec.task.clone(),
            parent: live.spec.traceparent.as_deref().and_then(|parent| parent.parse().ok()),
            started: jiff::Timestamp::from_millisecond(i64::try_from(now_ms).unwrap_or(0))
                .unwrap_or_default(),
        };
        telemetry.observer(&run, observer)
    }

    /// Sends the remaining spans. Blocks until that is done.
    pub fn shutdown(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown();
        }
    }
}
