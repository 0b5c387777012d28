//! Periodic health probes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::retry::RetryingClient;

/// Probes one backend until the runtime shuts down.
pub(super) async fn probe_forever(client: Arc<RetryingClient>, index: usize, interval: Duration) {
    loop {
        let result = client.http.probe(&client.pool.backends()[index]).await;
        client.pool.probed(index, result);
        sleep(interval).await;
    }
}
