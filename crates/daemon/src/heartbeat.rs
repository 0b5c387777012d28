//! Heartbeats on streams of server-sent events.

use std::time::Duration;

use actix_web::web::Bytes;
use futures::{Stream, StreamExt as _, stream};
use tokio::time::{Instant, interval_at};

use super::guard::Permit;

/// Time between two heartbeats on a stream without events.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Adds a comment to a stream after each quiet period, so that proxies keep it open. Holds the
/// permit until its end.
pub(super) fn with_heartbeat<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    permit: Option<Permit>,
) -> impl Stream<Item = Result<Bytes, E>> {
    let ticks = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    stream::unfold(
        (Box::pin(pieces), ticks, permit),
        |(mut pieces, mut ticks, permit)| async move {
            tokio::select! {
                biased;
                piece = pieces.next() => {
                    ticks.reset();
                    piece.map(|piece| (piece, (pieces, ticks, permit)))
                }
                _ = ticks.tick() => Some((Ok(Bytes::from_static(b": alive\n\n")), (pieces, ticks, permit))),
            }
        },
    )
}
