//! Swagger UI, built in, below `/docs/`. The page loads nothing from other hosts.

use std::io::Read as _;
use std::sync::{Arc, LazyLock};

use actix_web::http::header::{self, ContentEncoding};
use actix_web::{HttpRequest, HttpResponse, web};
use flate2::read::GzDecoder;
use utoipa_swagger_ui::{Config, serve};

use crate::encodings::accepts_gzip;
use crate::error::{ApiError, method_not_allowed};

/// Without a validator, which would be on another host.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json").validator_url("none")));

/// Has the browser block requests to other hosts.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'";

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/docs")
                .route(web::get().to(moved))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/docs/{file:.*}")
                .route(web::get().to(file))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

async fn moved() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/docs/")).finish()
}

/// The files are embedded gzipped, a quarter of their size.
async fn file(request: HttpRequest, name: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let found =
        serve(&name, Arc::clone(&CONFIG)).map_err(|error| ApiError::internal(error.to_string()))?;
    let file = found.ok_or_else(ApiError::no_such_route)?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::VARY, "Accept-Encoding"));
    let mut body = file.bytes.into_owned();
    if file.gzpipped && accepts_gzip(&request) {
        response.insert_header(ContentEncoding::Gzip);
    } else if file.gzpipped {
        let mut plain = Vec::new();
        let unpacked = GzDecoder::new(&body[..]).read_to_end(&mut plain);
        unpacked.map_err(|error| ApiError::internal(format!("{name}: {error}")))?;
        body = plain;
    }
    Ok(response.content_type(file.content_type).body(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;

    async fn get(encodings: Option<&str>) -> (bool, Vec<u8>) {
        let request = TestRequest::default();
        let request = encodings
            .into_iter()
            .fold(request, |request, list| request.insert_header(("Accept-Encoding", list)));
        let response =
            file(request.to_http_request(), "index.html".to_owned().into()).await.unwrap();
        let is_gzipped = response
            .headers()
            .get(header::CONTENT_ENCODING)
            .is_some_and(|encoding| encoding == "gzip");
        (is_gzipped, to_bytes(response.into_body()).await.unwrap().to_vec())
    }

    #[actix_web::test]
    async fn files_are_gzipped_for_clients_that_accept_it() {
        for (encodings, expected) in [
            (None, false),
            (Some("identity"), false),
            (Some("gzip;q=0"), false),
            (Some("br, gzip"), true),
        ] {
            let (is_gzipped, mut body) = get(encodings).await;
            assert_eq!(is_gzipped, expected, "{encodings:?}");
            if is_gzipped {
                let mut plain = Vec::new();
                GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
                body = plain;
            }
            assert!(String::from_utf8(body).unwrap().contains("swagger-ui"), "{encodings:?}");
        }
    }
}
