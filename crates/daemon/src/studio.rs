//! The studio's files, built in: a page that shows runs and acts on them through the API. They are
//! the same for everybody, so they need no key; what the page asks for does.
//!
//! Its sources are in `studio/`; `make studio` builds `studio/dist` from them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use actix_web::http::header::{self, ContentEncoding, EntityTag, Header as _, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::encodings::accepts_gzip;
use super::error::{ApiError, method_not_allowed};

/// No inline scripts, no other hosts, no frames, no markup from strings.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'none'; frame-ancestors 'none'; base-uri 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

struct File {
    name: &'static str,
    content_type: &'static str,
    plain: &'static [u8],
    gzipped: Vec<u8>,
    /// Hash of the content, with which a browser asks whether its copy is current.
    tag: String,
}

impl File {
    fn new(name: &'static str, content_type: &'static str, plain: &'static [u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).expect("invariant: writing to memory cannot fail");
        let gzipped = encoder.finish().expect("invariant: writing to memory cannot fail");

        let mut tag = String::new();
        // 96 bits are enough to tell versions of a file apart.
        for byte in &Sha256::digest(plain)[..12] {
            write!(tag, "{byte:02x}").expect("invariant: writing to a string cannot fail");
        }

        Self { name, content_type, plain, gzipped, tag }
    }
}

/// All files; the first is the page.
static FILES: LazyLock<[File; 4]> = LazyLock::new(|| {
    [
        File::new("index.html", "text/html; charset=utf-8", include_bytes!("../studio/index.html")),
        File::new(
            "studio.js",
            "text/javascript; charset=utf-8",
            include_bytes!("../studio/studio.js"),
        ),
        File::new("studio.css", "text/css; charset=utf-8", include_bytes!("../studio/studio.css")),
        File::new("icon.svg", "image/svg+xml", include_bytes!("../studio/icon.svg")),
    ]
});

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route| {
        web::resource(path).route(route).default_service(web::to(|| method_not_allowed("GET")))
    };
    config
        .service(resource("/", web::get().to(start)))
        .service(resource("/studio", web::get().to(moved)))
        .service(resource("/studio/{path:.*}", web::get().to(file)));
}

/// Not permanent: the start may become another page.
async fn start() -> HttpResponse {
    HttpResponse::TemporaryRedirect().insert_header((header::LOCATION, "/studio/")).finish()
}

async fn moved() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/studio/")).finish()
}

/// A file; for the path of a screen, the page.
fn found(path: &str) -> Option<&'static File> {
    match path.strip_prefix("files/") {
        Some(name) => FILES[1..].iter().find(|file| file.name == name),
        None => Some(&FILES[0]),
    }
}

async fn file(request: HttpRequest, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let file = found(&path).ok_or_else(ApiError::no_such_route)?;

    let tag = EntityTag::new_weak(file.tag.clone());
    let is_current = match IfNoneMatch::parse(&request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(&tag)),
        Err(_) => false,
    };

    let mut response = if is_current { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::X_FRAME_OPTIONS, "DENY"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"))
        // Kept, but asked about each time: the next version of the program has other files.
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::VARY, "Accept-Encoding"))
        .insert_header((header::ETAG, tag.to_string()));

    if is_current {
        return Ok(response.finish());
    }

    response.content_type(file.content_type);
    if accepts_gzip(&request) {
        return Ok(response.insert_header(ContentEncoding::Gzip).body(&file.gzipped[..]));
    }
    Ok(response.body(file.plain))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use flate2::read::GzDecoder;

    use super::*;

    async fn get(path: &str, headers: &[(&'static str, String)]) -> (u16, String, Vec<u8>) {
        let request = headers
            .iter()
            .fold(TestRequest::default(), |request, header| request.insert_header(header.clone()));
        let response = file(request.to_http_request(), path.to_owned().into()).await.unwrap();
        let tag = response.headers().get("etag").unwrap().to_str().unwrap().to_owned();
        (response.status().as_u16(), tag, to_bytes(response.into_body()).await.unwrap().to_vec())
    }

    #[actix_web::test]
    async fn screens_are_the_page_and_files_are_compressed() {
        let (status, tag, page) = get("runs/run_1", &[]).await;
        assert_eq!((status, page.as_slice()), (200, FILES[0].plain));
        assert_eq!(get("", &[]).await.2, page);

        let (_, _, gzipped) =
            get("files/studio.js", &[("Accept-Encoding", "gzip".to_owned())]).await;
        let mut plain = Vec::new();
        GzDecoder::new(&gzipped[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, FILES[1].plain);

        let (status, _, body) = get("", &[("If-None-Match", tag)]).await;
        assert_eq!((status, body.len()), (304, 0));
        assert!(found("files/index.html").is_none() && found("files/../Cargo.toml").is_none());
    }

    #[test]
    fn the_page_loads_only_what_is_here() {
        let page = std::str::from_utf8(FILES[0].plain).unwrap();
        for (at, _) in page.match_indices("=\"/") {
            let path = page[at + 2..].split('"').next().unwrap();
            assert!(
                path.strip_prefix("/studio/").is_some_and(|path| found(path).is_some()),
                "{path}"
            );
        }
        assert!(!page.contains("://"), "{page}");
    }
}
