//! Submission: from a request to accepted runs, for all routes and tools that start any.

use actix_web::http::header::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::background::in_background;
use super::error::ApiError;
use super::state::State;
use prime_agent_set::task_program::TaskPrograms;
use prime_journal::IdempotencyKey;
use prime_service::app::App;
use prime_service::requests::{ResolvedRun, RunRequest, resolve};
use prime_service::runs::{Accepted, NewRun};
use prime_service::telemetry::TraceParent;

/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The request's `Idempotency-Key`, with the fingerprint of its body.
///
/// # Errors
/// 400: it is not a key, or there are two that differ.
pub(super) fn key_of(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut keys = headers.get_all("Idempotency-Key");
    let Some(key) = keys.next() else { return Ok(None) };
    // A repetition with the other one would be another run.
    if keys.any(|other| other != key) {
        return Err(ApiError::bad_field(
            "Idempotency-Key",
            "is there twice, with different keys: send one",
        ));
    }

    let key =
        key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX).ok_or_else(
            || {
                ApiError::bad_field(
                    "Idempotency-Key",
                    format!("must be 1 to {KEY_BYTES_MAX} visible ASCII characters"),
                )
            },
        )?;
    Ok(Some(IdempotencyKey { key: key.to_owned(), fingerprint: Sha256::digest(body).into() }))
}

/// The caller's trace context. The standard says to ignore a malformed header.
pub(super) fn traceparent_of(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("traceparent")?.to_str().ok()?;
    header.parse::<TraceParent>().ok().map(|parent| parent.to_string())
}

/// Resolves a request where that delays no other one, if there is room for its runs.
pub(super) async fn resolve_if_room<T: Send + 'static>(
    state: &State,
    owner: &str,
    key: Option<&IdempotencyKey>,
    resolve: impl FnOnce(&App, &TaskPrograms) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    // A key may belong to a run that is open already and needs no room.
    if key.is_none() {
        state.runs.has_room(owner)?;
    }

    // Generating an instance may take milliseconds, for which other requests of this worker must
    // not wait.
    let app = state.runs.app();
    let tasks = app.tasks().of_owner(owner);
    in_background(move || resolve(&app, &tasks)).await?
}

/// Accepts a run for an owner.
pub(super) async fn submit_run(
    state: &State,
    owner: &str,
    key: Option<IdempotencyKey>,
    traceparent: Option<String>,
    wanted: RunRequest,
) -> Result<Accepted, ApiError> {
    let resolved = resolve_if_room(state, owner, key.as_ref(), move |app, tasks| {
        Ok(resolve(app, tasks, &wanted, traceparent)?)
    })
    .await;
    let ResolvedRun { spec, problem } = match (resolved, &key) {
        (Ok(resolved), _) => resolved,
        (Err(error), None) => return Err(error),
        // A repeated request gets its run, even if its task has been deleted since.
        (Err(error), Some(key)) => {
            return state.runs.repeated(owner, key).await?.ok_or(error);
        }
    };

    let new = NewRun { owner: owner.to_owned(), key, spec, problem };
    Ok(state.runs.accept(new).await?)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_request_has_one_idempotency_key() {
        let key = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                let name = HeaderName::from_static("idempotency-key");
                headers.append(name, HeaderValue::from_static(value));
            }
            key_of(&headers, b"{}").map(|found| found.map(|found| found.key))
        };

        assert_eq!(key(&[]).unwrap(), None);
        for same in [&["ee"][..], &["ee", "ee"], &["ee", "ee", "ee"]] {
            assert_eq!(key(same).unwrap().as_deref(), Some("ee"), "{same:?}");
        }
        for different in [&["ee", "ff"][..], &["ee", "ee", "ff"], &["ee", "EE"], &["ee", ""]] {
            let error = key(different).unwrap_err().body().error;
            assert_eq!(error.field.as_deref(), Some("Idempotency-Key"), "{different:?}");
            assert!(error.message.contains("different keys: send one"), "{}", error.message);
        }
    }
}
