//! Compresses JSON where that pays and the client accepts it, and sends 304 to a client that has
//! the same content already. Streams pass unchanged.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::encodings::accepts_gzip;

/// Sizes of JSON in bytes between which compression pays and is quick.
const COMPRESSED_MIN: usize = 1_024;
const COMPRESSED_MAX: usize = 8 << 20;

/// A tag of a content: equal for the same bytes, compressed or not.
fn tag_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("W/\"{:016x}\"", hasher.finish())
}

/// True if a client has the content with this tag, by its `If-None-Match`.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let bare_tag = bare(tag);
    known.flat_map(|tags| tags.split(',')).any(|one| one.trim() == "*" || bare(one) == bare_tag)
}

fn gzipped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Middleware that compresses JSON and answers repeated questions with 304.
///
/// # Errors
/// The handler's.
pub async fn compact_json(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    if !is_json(response.headers()) {
        return Ok(response.map_into_boxed_body());
    }

    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        // A stream.
        Err(body) => {
            let response = response.set_body(BoxBody::new(body));
            return Ok(ServiceResponse::new(request, response));
        }
    };

    if request.method() == Method::GET && response.status() == StatusCode::OK {
        let tag = tag_of(&bytes);
        let is_known = is_known(request.headers(), &tag);
        if let Ok(value) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, value);
        }
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(header::CONTENT_TYPE);
            let response = response.set_body(BoxBody::new(()));
            return Ok(ServiceResponse::new(request, response));
        }
    }

    if !(COMPRESSED_MIN..=COMPRESSED_MAX).contains(&bytes.len()) {
        let response = response.set_body(BoxBody::new(bytes));
        return Ok(ServiceResponse::new(request, response));
    }
    let accept_encoding = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(header::VARY, accept_encoding);
    let compressed = accepts_gzip(&request).then(|| gzipped(&bytes)).flatten();
    let response = match compressed {
        Some(compressed) => {
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
            response.set_body(BoxBody::new(compressed))
        }
        None => response.set_body(BoxBody::new(bytes)),
    };
    Ok(ServiceResponse::new(request, response))
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::middleware::from_fn;
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse, web};
    use std::io::Read as _;

    use super::*;

    async fn long() -> HttpResponse {
        HttpResponse::Ok().json(vec!["the same text again"; 200])
    }

    async fn stream() -> HttpResponse {
        let chunk = web::Bytes::from(vec![b'a'; 5_000]);
        let stream = futures::stream::iter([Ok::<_, Error>(chunk)]);
        HttpResponse::Ok().content_type("text/event-stream").streaming(stream)
    }

    async fn json_stream() -> HttpResponse {
        let chunk = web::Bytes::from(vec![b' '; 5_000]);
        let stream = futures::stream::iter([Ok::<_, Error>(chunk)]);
        HttpResponse::Ok().content_type("application/json").streaming(stream)
    }

    async fn short() -> HttpResponse {
        HttpResponse::Ok().json("short")
    }

    async fn refused() -> HttpResponse {
        HttpResponse::BadRequest().json(vec!["a long error"; 200])
    }

    /// The status, some headers and the body of an answer.
    async fn ask(path: &str, headers: &[(&str, &str)]) -> (u16, [Option<String>; 3], Vec<u8>) {
        let app = App::new()
            .wrap(from_fn(compact_json))
            .route("/long", web::get().to(long))
            .route("/stream", web::get().to(stream))
            .route("/json-stream", web::get().to(json_stream))
            .route("/short", web::get().to(short))
            .route("/refused", web::get().to(refused));
        let app = init_service(app).await;
        let request = headers
            .iter()
            .fold(TestRequest::get().uri(path), |request, header| request.insert_header(*header));
        let response = call_service(&app, request.to_request()).await;
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let headers = ["content-encoding", "etag", "vary"].map(header);
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body()).await.unwrap_or_default();
        (status, headers, body.to_vec())
    }

    const GZIP: (&str, &str) = ("accept-encoding", "gzip, br");

    #[actix_web::test]
    async fn long_json_is_compressed_for_those_who_know_how() {
        let (status, [encoding, tag, vary], plain) = ask("/long", &[]).await;
        assert_eq!((status, encoding, vary.as_deref()), (200, None, Some("accept-encoding")));
        assert!(tag.as_ref().is_some_and(|tag| tag.starts_with("W/\"")), "{tag:?}");

        let (status, [encoding, same_tag, _], compressed) = ask("/long", &[GZIP]).await;
        assert_eq!((status, encoding.as_deref(), same_tag), (200, Some("gzip"), tag));
        assert!(compressed.len() < plain.len() / 10, "{}", compressed.len());
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, plain);
    }

    #[actix_web::test]
    async fn what_a_client_has_is_not_sent_again() {
        let (_, [_, tag, _], _) = ask("/short", &[]).await;
        let tag = tag.expect("a tag");
        for known in [tag.clone(), "*".to_owned(), format!("\"other\", {tag}")] {
            let (status, [_, again, _], body) =
                ask("/short", &[GZIP, ("if-none-match", &known)]).await;
            assert_eq!((status, again.as_deref(), body.len()), (304, Some(tag.as_str()), 0));
        }
        let (status, ..) = ask("/long", &[("if-none-match", &tag)]).await;
        assert_eq!(status, 200);
    }

    #[actix_web::test]
    async fn streams_short_answers_and_errors_pass() {
        for path in ["/stream", "/json-stream"] {
            let (status, headers, body) = ask(path, &[GZIP]).await;
            assert_eq!((status, headers, body.len()), (200, [None, None, None], 5_000), "{path}");
        }
        let (_, [encoding, ..], body) = ask("/short", &[GZIP]).await;
        assert_eq!((encoding, body.as_slice()), (None, &b"\"short\""[..]));
        let (status, [encoding, tag, _], _) = ask("/refused", &[GZIP]).await;
        assert_eq!((status, encoding.as_deref(), tag), (400, Some("gzip"), None));
    }
}
