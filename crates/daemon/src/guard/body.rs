//! Reads request bodies within limits of size and time. actix-web itself waits forever for the rest
//! of a body.

use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut};
use actix_web::{FromRequest, HttpRequest};
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _};
use tokio::time::{Instant, timeout_at};

use crate::error::ApiError;
use prime_settings::Server;

/// Limits of bodies. They are in the app data, where [`Body`] looks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Most bytes of a body.
    pub bytes_max: usize,
    /// The option that sets it.
    pub option: &'static str,
    /// Longest time from the end of the head to the end of the body.
    pub timeout: Duration,
}

impl From<&Server> for BodyLimits {
    fn from(server: &Server) -> Self {
        Self {
            bytes_max: usize::try_from(server.body_bytes_max).unwrap_or(usize::MAX),
            option: "server.body_bytes_max",
            timeout: Duration::from_millis(server.body_timeout_ms),
        }
    }
}

impl BodyLimits {
    fn exceeded(&self) -> ApiError {
        ApiError::too_large(self.bytes_max, self.option)
    }
}

/// Extracts the whole body of a request, without a byte order mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(pub Bytes);

impl FromRequest for Body {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        // Only a bug in the set-up of the server leaves them out.
        let Some(limits) = request.app_data::<BodyLimits>().copied() else {
            let missing = ApiError::internal("the limits of bodies are not configured");
            return std::future::ready(Err(missing)).boxed_local();
        };
        let body = limited(request, payload, limits);
        async move {
            let body = body.await?;
            Ok(Self(body.slice_ref(without_byte_order_mark(&body))))
        }
        .boxed_local()
    }
}

/// Reads a body whose size limit differs from that of most routes.
pub async fn body_of(
    request: &HttpRequest,
    payload: &mut Payload,
    bytes_max: u64,
    option: &'static str,
) -> Result<Bytes, ApiError> {
    let Some(limits) = request.app_data::<BodyLimits>().copied() else {
        return Err(ApiError::internal("the limits of bodies are not configured"));
    };
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    limited(request, payload, BodyLimits { bytes_max, option, ..limits }).await
}

/// The body of a request. Its time begins now, however late the future is first polled.
fn limited(
    request: &HttpRequest,
    payload: &mut Payload,
    limits: BodyLimits,
) -> LocalBoxFuture<'static, Result<Bytes, ApiError>> {
    let deadline = Instant::now() + limits.timeout;
    if let Err(error) = check_head(request, &limits) {
        return std::future::ready(Err(error)).boxed_local();
    }
    let mut payload = payload.take();
    async move { read_body(&mut payload, &limits, deadline).await }.boxed_local()
}

/// The text without the byte order mark that some editors and shells put before it. JSON allows
/// none.
pub(crate) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Checks the headers that describe the body.
fn check_head(request: &HttpRequest, limits: &BodyLimits) -> Result<(), ApiError> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(encoding) = header(header::CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let message = format!("the body's Content-Encoding is {encoding:?}; send it unencoded");
        return Err(ApiError::unsupported_media_type(message));
    }

    // actix-web has refused a length that is not a number.
    let length =
        header(header::CONTENT_LENGTH).and_then(|length| length.trim().parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.bytes_max as u64) {
        return Err(limits.exceeded());
    }
    Ok(())
}

/// Reads a whole body.
///
/// # Errors
/// 413 as soon as there are too many bytes, 408 at the deadline, 400 when the body is
/// truncated or malformed.
pub async fn read_body(
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
    limits: &BodyLimits,
    deadline: Instant,
) -> Result<Bytes, ApiError> {
    let whole = async {
        let mut body = BytesMut::new();
        while let Some(piece) = payload.next().await {
            let piece = piece.map_err(|error| match error {
                PayloadError::Overflow => limits.exceeded(),
                error => ApiError::bad_request(format!("the body cannot be read: {error}")),
            })?;
            // Cannot underflow: the body never exceeds its limit.
            if piece.len() > limits.bytes_max - body.len() {
                return Err(limits.exceeded());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    };

    timeout_at(deadline, whole).await.unwrap_or_else(|_| {
        Err(ApiError::timeout(
            "the body was not complete in time (server.body_timeout_ms); send it faster",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::ResponseError as _;
    use futures::stream;

    const fn limits(bytes_max: usize) -> BodyLimits {
        let (option, timeout) = ("server.body_bytes_max", Duration::from_secs(1));
        BodyLimits { bytes_max, option, timeout }
    }

    fn pieces(texts: &[&'static str]) -> impl Stream<Item = Result<Bytes, PayloadError>> + Unpin {
        stream::iter(
            texts.iter().map(|text| Ok(Bytes::from_static(text.as_bytes()))).collect::<Vec<_>>(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_have_exactly_the_limit() {
        let deadline = Instant::now() + Duration::from_secs(1);
        assert_eq!(read_body(&mut pieces(&[]), &limits(0), deadline).await, Ok(Bytes::new()));
        assert_eq!(
            read_body(&mut pieces(&["abc", "", "de"]), &limits(5), deadline).await,
            Ok(Bytes::from("abcde"))
        );
        for texts in [&["abcdef"][..], &["abc", "def"], &["abcde", "f"]] {
            let error = read_body(&mut pieces(texts), &limits(5), deadline).await.unwrap_err();
            assert_eq!(error.status_code(), 413);
            assert!(
                error.to_string().contains("more than 5 bytes (server.body_bytes_max)"),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_late_is_a_timeout() {
        let started = Instant::now();
        let one_byte_and_no_more = pieces(&["a"]).chain(stream::pending());
        let deadline = started + Duration::from_secs(10);
        let error =
            read_body(&mut Box::pin(one_byte_and_no_more), &limits(5), deadline).await.unwrap_err();
        assert_eq!(
            (error.status_code().as_u16(), started.elapsed()),
            (408, Duration::from_secs(10))
        );

        // A byte each second, for ever: steady, but too slow.
        let seconds = tokio::time::interval(Duration::from_secs(1));
        let trickle = stream::unfold(seconds, |mut seconds| async {
            seconds.tick().await;
            Some((Ok(Bytes::from_static(b"x")), seconds))
        });
        let error =
            read_body(&mut Box::pin(trickle), &limits(1_000), deadline + Duration::from_secs(10))
                .await
                .unwrap_err();
        assert_eq!(error.status_code(), 408);
    }

    #[tokio::test(start_paused = true)]
    async fn a_truncated_body_is_a_bad_request() {
        let cut = pieces(&["a"]).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        let deadline = Instant::now() + Duration::from_secs(1);
        assert_eq!(
            read_body(&mut Box::pin(cut), &limits(5), deadline).await.unwrap_err().status_code(),
            400
        );
    }
}
