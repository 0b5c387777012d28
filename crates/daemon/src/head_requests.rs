//! HEAD wherever there is GET: the same handler, whose body is not sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Bytes;

/// A body that is not sent.
///
/// Its length, if it is known, is a header of the response. If it were the size of this body, the
/// server would expect its bytes wherever it mistakes the response for that of another method. It
/// does so for pipelined requests: it goes by the method of the one that it has read last.
struct Unsent;

impl MessageBody for Unsent {
    type Error = Error;

    fn size(&self) -> BodySize {
        // No length, and with `no_chunking` nothing that marks its end.
        BodySize::Stream
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}

/// Middleware that answers HEAD as GET.
///
/// # Errors
/// The handler's.
pub async fn head_as_get(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if *request.method() != Method::HEAD {
        return next.call(request).await.map(ServiceResponse::map_into_boxed_body);
    }
    request.head_mut().method = Method::GET;
    let response = next.call(request).await?;
    // Not even read: a stream would last as long as its run, for nobody.
    Ok(response.map_body(|head, body| {
        head.no_chunking(true);
        // For a 304 it would be the length of the 200, which is not known here.
        if let BodySize::Sized(length) = body.size()
            && head.status != StatusCode::NOT_MODIFIED
        {
            head.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        BoxBody::new(Unsent)
    }))
}
