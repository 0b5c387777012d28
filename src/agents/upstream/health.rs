//! Looks at a server again and again, whether it is there.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::attempts::Asker;

/// Never ends by itself; ends with its runtime.
pub(super) async fn watch(asker: Arc<Asker>, index: usize, interval: Duration) {
    loop {
        let found = asker.http.look(&asker.pool.members()[index]).await;
        asker.pool.looked(index, found);
        sleep(interval).await;
    }
}
