//! The middleware that admits requests and completes responses, in the order that the module lists.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{
    RequestHead, Service, ServiceRequest, ServiceResponse, Transform, forward_ready,
};
use actix_web::error::InternalError;
use actix_web::http::ConnectionType;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{Error, HttpMessage as _, HttpResponse, ResponseError as _};
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, Ready, ready};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::connections::{Connection, Exchange};
use super::expectation::Expectation;
use super::failed_keys::FailedKeys;
use super::head_limits::HeadLimits;
use super::keys::{Keys, Owner, Rights};
use super::local_only::check_local;
use super::rate_limit::{Limits, Permit};
use super::request_id::{RequestId, X_REQUEST_ID};
use super::response_body::GuardedBody;
use crate::error::{ApiError, ErrorKind};
use prime_settings::Server;

/// Paths without key and limits: monitoring must always get a response.
pub const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// True if a path is that of the studio's files, which are the same for everybody. What the page
/// then asks for needs a key.
fn is_studio(path: &str) -> bool {
    path == "/studio" || path.starts_with("/studio/")
}

/// The middleware. Clones share their counts.
#[derive(Clone)]
pub struct Guard(Arc<Rules>);

/// A response that is about to be sent.
pub struct ResponseHead<'a> {
    /// The pattern of its route, such as `/v1/runs/{id}`; `None` for an unknown path.
    pub pattern: Option<&'a str>,
    /// The HTTP status code.
    pub status: u16,
    /// The error code, if it is an error.
    pub code: Option<&'static str>,
    /// Since the request's arrival.
    pub seconds: f64,
}

/// What is called with every response.
type Measure = Box<dyn Fn(&ResponseHead<'_>) + Send + Sync>;

/// Shared by all workers.
struct Rules {
    measure: Measure,
    heads: HeadLimits,
    keys: Keys,
    failed: FailedKeys,
    anonymous: Arc<Limits>,
    /// The limits of each key, in the order of `keys`.
    of_keys: Vec<Arc<Limits>>,
}

impl Guard {
    /// A guard with the limits and keys of the configuration. It calls `measure` for each response.
    #[must_use]
    pub fn new(
        server: &Server,
        measure: impl Fn(&ResponseHead<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Rules {
            measure: Box::new(measure),
            heads: server.into(),
            keys: Keys::new(&server.keys),
            failed: FailedKeys::default(),
            anonymous: Limits::anonymous(server),
            of_keys: server.keys.iter().map(|key| Limits::of_key(key, server)).collect(),
        }))
    }
}

impl Rules {
    /// The owner of a probe, which needs no key but may have one.
    fn prober(&self, head: &RequestHead) -> Owner {
        if self.keys.is_empty() {
            return self.anonymous.owner().clone();
        }
        match self.keys.authenticate(&head.headers) {
            Ok(key) => self.of_keys[key].owner().clone(),
            Err(_) => Owner { name: String::new(), rights: Rights::Stranger },
        }
    }

    /// Admits a request. Returns its owner, and the permit that it holds.
    fn admit(&self, request: &ServiceRequest) -> Result<(Owner, Option<Permit>), ApiError> {
        let head = request.head();
        // A connection in the reserve is for probes alone.
        if !OPEN.contains(&request.path())
            && let Some(connection) = request.conn_data::<Rc<Connection>>()
        {
            connection.check_place()?;
        }

        self.heads.check(head)?;
        if self.keys.is_empty() {
            check_local(head)?;
        }
        if OPEN.contains(&request.path()) {
            return Ok((self.prober(head), None));
        }
        // A browser sends no key when it loads a page.
        if !self.keys.is_empty() && is_studio(request.path()) {
            return Ok((self.prober(head), None));
        }

        let limits = if self.keys.is_empty() {
            &self.anonymous
        } else {
            &self.of_keys[self.keys.authenticate(&head.headers)?]
        };
        let permit = limits.enter()?;
        // For `stream_permit`: a handler that streams enters another limit of the same owner.
        request.extensions_mut().insert(Arc::clone(limits));
        Ok((limits.owner().clone(), Some(permit)))
    }
}

impl<S, B> Transform<S, ServiceRequest> for Guard
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Transform = GuardService<S>;
    type InitError = ();
    type Future = Ready<Result<GuardService<S>, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        ready(Ok(GuardService { service: Rc::new(service), rules: Arc::clone(&self.0) }))
    }
}

/// A service that the guard protects.
pub struct GuardService<S> {
    service: Rc<S>,
    rules: Arc<Rules>,
}

impl<S, B> Service<ServiceRequest> for GuardService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Error>>;

    forward_ready!(service);

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let (service, rules) = (Rc::clone(&self.service), Arc::clone(&self.rules));
        let id = RequestId::of(request.headers());
        let span = tracing::info_span!("request", id = id.as_str(), method = %request.method(), path = request.path());
        let arrived = Instant::now();
        let exchange = Exchange::begin(request.conn_data::<Rc<Connection>>());

        async move {
            let (owner, permit) = match rules.admit(&request) {
                Ok(admitted) => admitted,
                Err(error) => {
                    if error.kind() == ErrorKind::AuthenticationError {
                        // The delay holds the connection, so it is the first to make room for
                        // others.
                        let address = request.peer_addr().map(|address| address.ip());
                        let delay = rules.failed.note(address, &error);
                        if !delay.is_zero() {
                            exchange.is_delayed();
                            tokio::time::sleep(delay).await;
                            exchange.waits();
                        }
                    } else {
                        tracing::info!(code = error.code(), "refused: {error}");
                    }

                    let pattern = request.match_pattern();
                    (rules.measure)(&ResponseHead {
                        pattern: pattern.as_deref(),
                        status: error.status_code().as_u16(),
                        code: Some(error.code()),
                        seconds: arrived.elapsed().as_secs_f64(),
                    });
                    return Ok(request.into_response(prepare(
                        error.error_response(),
                        &id,
                        exchange,
                        None,
                    )));
                }
            };

            request.extensions_mut().insert(owner);
            request.extensions_mut().insert(id.clone());
            let expectation = Expectation::of(&mut request);
            // In a block, so that a panic before the first await is caught as well.
            let handled =
                AssertUnwindSafe(async { service.call(request).await }).catch_unwind().await;
            if let Some(expectation) = expectation {
                expectation.withdraw();
            }

            let error = match handled {
                Ok(Ok(response)) => {
                    let pattern = response.request().match_pattern();
                    let error =
                        response.response().error().and_then(|error| error.as_error::<ApiError>());
                    (rules.measure)(&ResponseHead {
                        pattern: pattern.as_deref(),
                        status: response.status().as_u16(),
                        code: error.map(ApiError::code),
                        seconds: arrived.elapsed().as_secs_f64(),
                    });
                    return Ok(finish(response, &id, exchange, permit));
                }
                Ok(Err(error)) => error,
                Err(panic) => panicked(panic.as_ref(), &id).into(),
            };

            // The request was consumed, so the response travels in an error.
            let response = as_api_error(error.error_response(), Some(ApiError::foreign(&error)));
            Err(InternalError::from_response(error, prepare(response, &id, exchange, permit))
                .into())
        }
        .instrument(span)
        .boxed_local()
    }
}

/// The error of a handler that panicked. The reason goes to the log only.
fn panicked(panic: &(dyn Any + Send), id: &RequestId) -> ApiError {
    let reason = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let reason = reason.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!("a handler panicked: {reason}");
    ApiError::internal(format!(
        "the daemon failed on this request: see its log under the id {}",
        id.as_str()
    ))
}

/// Completes the response of a handler.
fn finish<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
    id: &RequestId,
    exchange: Exchange,
    permit: Option<Permit>,
) -> ServiceResponse<BoxBody> {
    let (request, response) = response.into_parts();
    let response = response.map_into_boxed_body();
    let foreign =
        response.error().map(ApiError::foreign).or_else(|| ApiError::bare(response.status()));
    let response = as_api_error(response, foreign);

    tracing::debug!(status = response.status().as_u16(), "answered");
    ServiceResponse::new(request, prepare(response, id, exchange, permit))
}

/// Adds the common headers, and tracks the body.
fn prepare(
    response: HttpResponse,
    id: &RequestId,
    exchange: Exchange,
    permit: Option<Permit>,
) -> HttpResponse {
    response.map_body(|head, body| {
        if exchange.is_in_reserve() {
            head.set_connection_type(ConnectionType::Close);
        }
        // Also where actix-web or a handler decided so.
        if head.connection_type() == ConnectionType::Close {
            exchange.ends_connection();
        }

        add_headers(head.headers_mut(), id);
        BoxBody::new(GuardedBody::new(body, exchange, permit))
    })
}

/// Gives an error of the framework, which is plain text or empty, the shape of all errors.
fn as_api_error(response: HttpResponse, foreign: Option<ApiError>) -> HttpResponse {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_json =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    match foreign {
        Some(foreign) if !is_json => foreign.error_response(),
        _ => response,
    }
}

fn add_headers(headers: &mut HeaderMap, id: &RequestId) {
    headers.insert(X_REQUEST_ID, id.to_header());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The files of the studio say how long they may be kept; they are the same for everybody.
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
