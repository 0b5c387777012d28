//! Health probes: periodic ones, and one that a caller waits for.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::time::sleep;

use super::attempt_error::AttemptError;
use super::retry::RetryingClient;

/// Upper bound for the timeout of a periodic probe.
const PERIODIC_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Upper bound for the timeout of a probe that a caller waits for.
const AWAITED_TIMEOUT_MAX: Duration = Duration::from_secs(5);

/// Probes one backend until the runtime shuts down.
pub(super) async fn probe_forever(client: Arc<RetryingClient>, index: usize, interval: Duration) {
    loop {
        let result = client.http.probe(&client.pool.backends()[index], PERIODIC_TIMEOUT_MAX).await;
        client.pool.probed(index, result.map(drop));
        sleep(interval).await;
    }
}

/// A server's answer to one probe.
pub struct Probed {
    /// Host, port and model.
    pub server: Arc<str>,
    /// The status of the answer, or why the server cannot be used.
    pub answer: Result<u16, String>,
}

/// Probes one backend.
pub(super) async fn probe_once(client: Arc<RetryingClient>, index: usize) -> Probed {
    let backend = &client.pool.backends()[index];

    let probed = client.http.probe(backend, AWAITED_TIMEOUT_MAX).await;
    let answer = match probed {
        // The health check's path may not exist, but a key that is refused there is refused
        // everywhere.
        Ok(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
            Err(AttemptError::from_status(status, "", None))
        }
        other => other,
    };

    let answer = answer.map(|status| status.as_u16()).map_err(|error| error.reason);
    Probed { server: Arc::clone(&backend.name), answer }
}
