//! Which encodings of a response a client accepts.

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptEncoding, Encoding, Header as _};

/// True if a client prefers gzip to the plain content.
pub(super) fn accepts_gzip(request: &HttpRequest) -> bool {
    let supported = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    accepted.and_then(|accepted| accepted.negotiate(supported.iter())) == Some(Encoding::gzip())
}
