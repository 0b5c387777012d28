//! HEAD wherever there is GET: the same handler, whose body is not sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::web::Bytes;

/// A body that is announced by its size, but not sent.
struct Unsent(BodySize);

impl MessageBody for Unsent {
    type Error = Error;

    fn size(&self) -> BodySize {
        self.0
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
/// Those of the handler.
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
    Ok(response.map_body(|_, body| BoxBody::new(Unsent(body.size()))))
}
