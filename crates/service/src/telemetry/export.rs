//! Sends spans to the collector: a bounded queue, and a thread that sends batches over OTLP/HTTP.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};
use reqwest::blocking::Client;

use super::spans::{Traced, TracedRun};
use prime_runtime::{Observer, Watched};

/// Capacity of the queue. Spans beyond it are dropped, so that a slow collector does not hold up
/// runs.
const QUEUE_MAX: usize = 16_384;
const BATCH_MAX: usize = 512;
/// How long a batch may fill.
const DELAY: Duration = Duration::from_secs(2);
/// Timeout of a request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The endpoint is not an address that spans can be sent to.
    #[error(
        "telemetry.otlp_endpoint = {endpoint:?}: {reason}; set it to the collector's address, such as http://127.0.0.1:4318"
    )]
    Endpoint {
        /// The endpoint, as configured.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Sends traces of runs to a collector.
pub struct Telemetry {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Telemetry {
    /// Starts the sending thread; `None` for an empty endpoint. A collector that cannot be reached
    /// is not an error: spans are dropped, and the log says so.
    ///
    /// # Errors
    /// When the endpoint is not an address.
    pub fn start(endpoint: &str) -> Result<Option<Self>, TelemetryError> {
        if endpoint.is_empty() {
            return Ok(None);
        }
        let refused =
            |reason: String| TelemetryError::Endpoint { endpoint: endpoint.to_owned(), reason };
        // The exporter has no TLS.
        if !endpoint.starts_with("http://") {
            return Err(refused("it does not start with http://".to_owned()));
        }

        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client().map_err(&refused)?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build()
            .map_err(|error| refused(error.to_string()))?;

        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(DELAY);
        let resource = Resource::builder()
            .with_service_name("prime-agents")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();

        let provider = SdkTracerProvider::builder()
            .with_span_processor(
                BatchSpanProcessor::builder(exporter).with_batch_config(queue.build()).build(),
            )
            // If a caller does not record its trace, this part of it is not recorded either.
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("prime-agents");
        Ok(Some(Self { provider, tracer }))
    }

    /// Traces a run's events, and passes them on. The root span ends with the run, or when the
    /// observer is dropped.
    pub fn observer(&self, run: &TracedRun, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        Arc::new(Watched::new(Traced::new(self.tracer.clone(), run), inner))
    }

    /// Flushes the queue, blocking for at most five seconds. Spans that end later are dropped.
    pub fn shutdown(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "some spans did not reach the collector");
        }
    }
}

/// The exporter's HTTP client. The collector is reached without TLS, so it needs no certificates;
/// the exporter's default client would load those of the system, and needs a TLS provider. It is
/// made on a thread because it contains a runtime.
fn client() -> Result<Client, String> {
    let make = || {
        // An error means that one is already installed, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        Client::builder()
            .tls_certs_only([])
            .timeout(PATIENCE)
            .build()
            .map_err(|error| error.to_string())
    };
    std::thread::spawn(make).join().map_err(|_| "the HTTP client panicked".to_owned())?
}
