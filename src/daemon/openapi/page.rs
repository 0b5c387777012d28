//! A page to read the interface with: Swagger UI, which is built in. Nothing on it comes from elsewhere.

use std::sync::{Arc, LazyLock};

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use utoipa_swagger_ui::{Config, serve};

use crate::daemon::error::ApiError;
use crate::daemon::no_such_method;

/// Without a validator: it would be asked on another host.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("/openapi.json").validator_url("none")));

/// The browser itself lets the page load nothing from other hosts.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'";

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/docs").route(web::get().to(moved)).default_service(web::to(|| no_such_method("GET"))))
        .service(
            web::resource("/docs/{file:.*}")
                .route(web::get().to(file))
                .default_service(web::to(|| no_such_method("GET"))),
        );
}

async fn moved() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/docs/")).finish()
}

async fn file(name: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let found = serve(&name, Arc::clone(&CONFIG)).map_err(|error| ApiError::internal(error.to_string()))?;
    let file = found.ok_or_else(ApiError::no_such_route)?;
    let mut response = HttpResponse::Ok();
    if file.gzpipped {
        response.insert_header(header::ContentEncoding::Gzip);
    }
    response.insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
    Ok(response.content_type(file.content_type).body(file.bytes.into_owned()))
}
