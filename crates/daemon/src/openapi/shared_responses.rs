//! Responses that many routes share: the refusals of the guard, of bodies and of paths. Each is
//! defined once in the document, and the operations that can give it refer to it.

use utoipa::ToSchema as _;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Content, Object, OpenApi, Ref, RefOr, Response, Type};

use crate::error::ErrorBody;
use crate::guard::OPEN;

/// The name of the security scheme.
const BEARER: &str = "bearer";
/// The header of every response.
const REQUEST_ID: &str = "X-Request-Id";

/// Paths below which an answer needs the journal.
const NEEDS_JOURNAL: [&str; 12] = [
    "/v1/runs",
    "/v1/approvals",
    "/v1/overview",
    "/v1/compare",
    "/v1/gc",
    "/v1/split",
    "/v1/cluster",
    "/v1/chat",
    "/v1/responses",
    "/v1/tasks",
    "/v1/schedules",
    "/v1/webhooks",
];

/// The properties of an operation that decide its shared responses.
struct Route<'a> {
    path: &'a str,
    has_keys: bool,
    has_body: bool,
    /// Has parameters in the path.
    has_path_parameters: bool,
    /// Has parameters in the query or the headers.
    has_other_parameters: bool,
}

impl Route<'_> {
    fn is_open(&self) -> bool {
        OPEN.contains(&self.path)
    }
}

struct SharedResponse {
    status: &'static str,
    name: &'static str,
    description: &'static str,
    /// An extra header: name, meaning, and whether it is a number.
    header: Option<(&'static str, &'static str, bool)>,
    comes_from: fn(&Route<'_>) -> bool,
}

/// All of them, by status.
const SHARED: [SharedResponse; 13] = [
    SharedResponse {
        status: "400",
        name: "BadRequest",
        description: "The body, the query or a header is wrong; `field` says which part",
        header: None,
        comes_from: |route| route.has_body || route.has_other_parameters,
    },
    SharedResponse {
        status: "401",
        name: "Unauthorized",
        description: "The key is missing or unknown",
        header: Some(("WWW-Authenticate", "`Bearer`", false)),
        comes_from: |route| route.has_keys && !route.is_open(),
    },
    SharedResponse {
        status: "403",
        name: "Forbidden",
        description: "Without keys: the request is for another host, or from a page of another origin",
        header: None,
        comes_from: |route| !route.has_keys,
    },
    SharedResponse {
        status: "404",
        name: "NotFound",
        description: "It does not exist, or belongs to another key",
        header: None,
        comes_from: |route| route.has_path_parameters,
    },
    SharedResponse {
        status: "405",
        name: "MethodNotAllowed",
        description: "The path does not have this method",
        header: Some(("Allow", "The allowed methods", false)),
        comes_from: |_| true,
    },
    SharedResponse {
        status: "408",
        name: "RequestTimeout",
        description: "The head or the body did not arrive in time; the connection is closed",
        header: None,
        comes_from: |_| true,
    },
    SharedResponse {
        status: "413",
        name: "BodyTooLarge",
        description: "The body has more than `server.body_bytes_max` bytes; the connection is closed",
        header: None,
        comes_from: |route| route.has_body,
    },
    SharedResponse {
        status: "414",
        name: "UrlTooLong",
        description: "Path and query have more than `server.url_bytes_max` bytes",
        header: None,
        comes_from: |_| true,
    },
    SharedResponse {
        status: "415",
        name: "UnsupportedMediaType",
        description: "The body has a `Content-Encoding`; send it unencoded",
        header: None,
        comes_from: |route| route.has_body,
    },
    SharedResponse {
        status: "429",
        name: "TooMany",
        description: "Too many requests, streams or open runs with one key, open runs in all, or connections",
        header: Some(("Retry-After", "Seconds until a retry may succeed", true)),
        comes_from: |route| !route.is_open(),
    },
    SharedResponse {
        status: "431",
        name: "HeadersTooLarge",
        description: "The headers have more than `server.header_bytes_max` bytes",
        header: None,
        comes_from: |_| true,
    },
    SharedResponse {
        status: "500",
        name: "InternalError",
        description: "A bug, or a damaged journal; see the daemon's log under the request's id",
        header: None,
        comes_from: |_| true,
    },
    SharedResponse {
        status: "503",
        name: "Unavailable",
        description: "The daemon is stopping, the journal cannot be written, or an agent failed",
        header: Some(("Retry-After", "Seconds until a retry may succeed", true)),
        comes_from: |route| NEEDS_JOURNAL.iter().any(|above| route.path.starts_with(above)),
    },
];

impl SharedResponse {
    fn response(&self) -> Response {
        let mut response = Response::new(self.description);
        let body = Content::new(Some(Ref::from_schema_name(ErrorBody::name())));

        response.content.insert("application/json".to_owned(), body.into());
        if let Some((name, meaning, is_number)) = self.header {
            let of = Object::with_type(if is_number { Type::Integer } else { Type::String });
            let mut header = Header::new(of);
            header.description = Some(meaning.to_owned());
            response.headers.insert(name.to_owned(), header.into());
        }

        add_request_id(&mut response);
        response
    }
}

fn add_request_id(response: &mut Response) {
    let header = Ref::new(format!("#/components/headers/{REQUEST_ID}"));
    response.headers.insert(REQUEST_ID.to_owned(), RefOr::Ref(header));
}

/// Adds the shared responses to a document.
pub struct SharedResponses {
    pub has_keys: bool,
}

impl SharedResponses {
    /// Adds the responses that the routes do not list themselves.
    pub fn add_to(&self, document: &mut OpenApi) {
        self.add_components(document.components.get_or_insert_default());
        for (path, item) in &mut document.paths.paths {
            for operation in operations(item) {
                self.add_answers(path, operation);
            }
        }
        if self.has_keys {
            document.security = Some(vec![SecurityRequirement::new(BEARER, [""; 0])]);
        }
    }

    fn add_components(&self, components: &mut Components) {
        let mut request_id = Header::default();
        request_id.description = Some(
            "The id of this request in the log: the client's `X-Request-Id` if it consists of 1 to 64 letters, digits, \
             `-`, `_` and `.`, otherwise a new one. A 408 for an incomplete head has none."
                .to_owned(),
        );
        components.headers.insert(REQUEST_ID.to_owned(), request_id.into());

        for shared in SHARED {
            components.responses.insert(shared.name.to_owned(), shared.response().into());
        }

        let meaning =
            if self.has_keys { "A key of `server.keys`" } else { "This daemon has no keys" };
        let mut bearer = Http::new(HttpAuthScheme::Bearer);
        bearer.description = Some(meaning.to_owned());
        components.security_schemes.insert(BEARER.to_owned(), SecurityScheme::Http(bearer).into());
    }

    fn add_answers(&self, path: &str, operation: &mut Operation) {
        let parameters = operation.parameters.as_deref().unwrap_or_default().len();
        let places = path.matches('{').count();
        let route = Route {
            path,
            has_keys: self.has_keys,
            has_body: operation.request_body.is_some(),
            has_path_parameters: places > 0,
            has_other_parameters: parameters > places,
        };
        // A probe needs no key, in contrast to the rest of the document.
        if route.has_keys && route.is_open() {
            operation.security = Some(Vec::new());
        }

        let responses = &mut operation.responses.responses;
        for response in responses.values_mut() {
            if let RefOr::T(response) = response {
                add_request_id(response);
            }
        }
        // What a route says itself is more exact, and stays.
        for shared in SHARED.iter().filter(|shared| (shared.comes_from)(&route)) {
            let answer = || RefOr::Ref(Ref::from_response_name(shared.name));
            responses.entry(shared.status.to_owned()).or_insert_with(answer);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete]
        .into_iter()
        .flatten()
}
