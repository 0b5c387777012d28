//! Streams for clients that speak HTTP/1.0, which has no chunked encoding: a stream for them is its
//! plain bytes, and ends with the connection (RFC 9112, 6.1 and 6.3).

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{ConnectionType, Version};
use actix_web::middleware::Next;

/// Middleware that sends no chunks to a client that does not know them.
///
/// # Errors
/// The handler's.
pub async fn unchunked_for_old_http(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let knows_chunks = request.version() >= Version::HTTP_11;
    let response = next.call(request).await?;

    Ok(response.map_body(|head, body| {
        if !knows_chunks && body.size() == BodySize::Stream {
            head.no_chunking(true);
            head.set_connection_type(ConnectionType::Close);
        }
        BoxBody::new(body)
    }))
}
