//! Cancels a run when its client stops waiting for it.

use std::sync::Arc;

use actix_web::HttpRequest;
use utoipa::IntoParams;

use crate::error::ApiError;
use prime_service::runs::{RunRecord, Runs};

/// The header that keeps runs going when their client disconnects.
const KEEP: &str = "X-Prime-Keep";

/// The headers of a chat completion. Only for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never constructed")]
pub struct ChatHeaders {
    /// Keeps the runs going when the client disconnects. With an `Idempotency-Key`, they
    /// continue unless it is `false`.
    #[param(rename = "X-Prime-Keep", nullable = false)]
    keep: Option<bool>,
    /// Makes retries safe, at any daemon of a shared journal: a repeated request gets the runs of
    /// the first. 1 to 255 visible ASCII characters, unique per request.
    #[param(rename = "Idempotency-Key", nullable = false, pattern = "^[!-~]{1,255}$")]
    key: Option<String>,
}

/// Cancels its run when dropped, unless the run is to be kept or is over.
pub struct CancelOnDrop {
    /// The run as it was accepted.
    pub record: RunRecord,
    runs: Arc<Runs>,
    is_kept: bool,
}

impl CancelOnDrop {
    pub fn new(runs: &Arc<Runs>, record: RunRecord, is_kept: bool) -> Self {
        Self { record, runs: Arc::clone(runs), is_kept }
    }

    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Cancels the run when dropped, even if it was to be kept.
    pub fn force(&mut self) {
        self.is_kept = false;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // A run that is over stays as it is; one of another node is not cancelled from here.
        if let Some(live) =
            self.runs.live(self.id()).filter(|live| !live.stream.committed().is_over)
        {
            tracing::info!(run = self.id(), "the client of this run is gone: cancelling it");
            live.cancel();
        }
    }
}

/// Whether a request's runs continue when its client disconnects, if it says so.
///
/// # Errors
/// 400 when the header is neither `true` nor `false`.
pub fn is_kept(request: &HttpRequest) -> Result<Option<bool>, ApiError> {
    let Some(value) = request.headers().get(KEEP) else { return Ok(None) };
    match value.as_bytes() {
        b"true" => Ok(Some(true)),
        b"false" => Ok(Some(false)),
        _ => Err(ApiError::bad_field(KEEP, "must be `true` or `false`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_header_is_true_or_false() {
        let with =
            |value| is_kept(&TestRequest::default().insert_header((KEEP, value)).to_http_request());
        assert_eq!(is_kept(&TestRequest::default().to_http_request()), Ok(None));
        assert_eq!((with("true"), with("false")), (Ok(Some(true)), Ok(Some(false))));
        for wrong in ["", "1", "yes", "TRUE"] {
            assert_eq!(with(wrong).unwrap_err().body().error.param.as_deref(), Some(KEEP));
        }
    }
}
