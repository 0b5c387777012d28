//! The body of a response: tells the connection whether the client reads it, and holds the
//! request's permit until the end.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;

use super::connections::Exchange;
use super::rate_limit::Permit;

/// Most bytes per piece. The server polls for the next piece when it has written this one, which
/// shows that the client reads.
const PIECE_BYTES: usize = 16 * 1_024;

/// The body of a response, sent in small pieces that show whether the client reads. It holds the
/// request's permit until its end.
pub struct GuardedBody {
    // Dropped in this order: the permit is back before the handler's stream ends.
    _permit: Option<Permit>,
    exchange: Exchange,
    body: BoxBody,
    /// The unsent rest of the last bytes of `body`.
    rest: Bytes,
}

impl GuardedBody {
    /// Sends `body` as part of `exchange`. Releases `permit` when the body ends or the client
    /// disconnects.
    #[must_use]
    pub fn new(body: BoxBody, exchange: Exchange, permit: Option<Permit>) -> Self {
        Self { body, rest: Bytes::new(), exchange, _permit: permit }
    }
}

impl MessageBody for GuardedBody {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        // No bytes would end a chunked response.
        while this.rest.is_empty() {
            match Pin::new(&mut this.body).poll_next(context) {
                Poll::Ready(Some(Ok(bytes))) => this.rest = bytes,
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {
                    this.exchange.waits();
                    return Poll::Pending;
                }
            }
        }

        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        this.exchange.sends();
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::BodyStream;
    use futures::stream;

    #[actix_web::test]
    async fn nothing_is_lost_in_pieces() {
        let whole: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let chunks: Vec<Bytes> = [&whole[..1], &[], &whole[1..70_000], &[], &[], &whole[70_000..]]
            .into_iter()
            .map(Bytes::copy_from_slice)
            .collect();
        let streamed =
            BodyStream::new(stream::iter(chunks.into_iter().map(Ok::<_, actix_web::Error>)));
        for body in [BoxBody::new(streamed), BoxBody::new(whole.clone())] {
            let size = body.size();
            let mut body = GuardedBody::new(body, Exchange::begin(None), None);
            assert_eq!(body.size(), size);
            let mut sent = Vec::new();
            while let Some(piece) =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_next(context)).await
            {
                let piece = piece.unwrap();
                assert!((1..=PIECE_BYTES).contains(&piece.len()));
                sent.extend_from_slice(&piece);
            }
            assert!(sent == whole, "the bytes differ");
        }
    }
}
