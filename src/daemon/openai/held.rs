//! A run that is wanted as long as somebody waits for it.

use std::sync::Arc;

use actix_web::HttpRequest;
use utoipa::IntoParams;

use crate::daemon::error::ApiError;
use crate::runs::{RunRecord, Runs};

/// Keeps a run going although nobody waits for it any more.
const KEEP: &str = "X-Prime-Keep";

/// The headers of a chat completion. The document's own type.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never made")]
pub struct ChatHeaders {
    /// Keeps the runs going when the client goes away.
    #[param(rename = "X-Prime-Keep", nullable = false)]
    keep: Option<bool>,
}

/// Ends its run when dropped, unless that is to be kept. A run that is over stays as it is.
pub struct Held {
    /// As it was accepted.
    pub record: RunRecord,
    runs: Arc<Runs>,
    is_kept: bool,
}

impl Held {
    pub fn new(runs: &Arc<Runs>, record: RunRecord, is_kept: bool) -> Self {
        Self { record, runs: Arc::clone(runs), is_kept }
    }

    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Nobody will wait for it, kept or not.
    pub fn release(&mut self) {
        self.is_kept = false;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Some(live) = self.runs.live(self.id()).filter(|live| !live.stream.committed().is_over) {
            tracing::info!(run = self.id(), "nobody waits for this run any more: it is cancelled");
            live.cancel();
        }
    }
}

/// Whether a request's runs go on when its client goes away.
///
/// # Errors
/// 400 when the header is neither `true` nor `false`.
pub fn is_kept(request: &HttpRequest) -> Result<bool, ApiError> {
    let Some(value) = request.headers().get(KEEP) else { return Ok(false) };
    match value.as_bytes() {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(ApiError::bad_field(KEEP, "must be `true` or `false`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_header_is_true_or_false() {
        let with = |value| is_kept(&TestRequest::default().insert_header((KEEP, value)).to_http_request());
        assert_eq!(is_kept(&TestRequest::default().to_http_request()), Ok(false));
        assert_eq!((with("true"), with("false")), (Ok(true), Ok(false)));
        for wrong in ["", "1", "yes", "TRUE"] {
            assert_eq!(with(wrong).unwrap_err().body().error.param.as_deref(), Some(KEEP));
        }
    }
}
