//! Who asks, and what they may see: the owner of a request, its rights, and the runs that are
//! theirs.

use actix_web::{HttpMessage as _, HttpRequest};

use super::error::ApiError;
use super::guard::{Owner, Rights};
use super::state::State;
use prime_service::runs::{RunError, RunRecord};

/// The owner of a request; empty without keys.
pub(super) fn owner_of(request: &HttpRequest) -> String {
    request.extensions().get::<Owner>().map_or_else(String::new, |owner| owner.name.clone())
}

/// What a request may do.
pub(super) fn rights_of(request: &HttpRequest) -> Rights {
    request.extensions().get::<Owner>().map_or(Rights::Stranger, |owner| owner.rights)
}

/// Checks that a request may act for all keys.
pub(super) fn needs_admin(request: &HttpRequest, what: &str) -> Result<(), ApiError> {
    if rights_of(request) == Rights::Admin {
        return Ok(());
    }
    let message = format!("only a key with `admin = true` {what}: ask the operator of this daemon");
    Err(ApiError::forbidden("admin_key_needed", message))
}

/// Whose runs a listing for this owner shows: the owner's; without keys, everybody's.
pub(super) fn shown_to(owner: String) -> Option<String> {
    Some(owner).filter(|owner| !owner.is_empty())
}

/// A run that the request may see: its owner's, or any without keys.
pub(super) async fn authorized_run(
    state: &State,
    request: &HttpRequest,
    id: &str,
) -> Result<RunRecord, ApiError> {
    owned_run(state, &owner_of(request), id).await
}

/// A run that an owner may see: its own, or any if the owner has no name.
pub(super) async fn owned_run(
    state: &State,
    asking: &str,
    id: &str,
) -> Result<RunRecord, ApiError> {
    let (owner, record) = state.runs.reader().get(id).await?;
    if asking.is_empty() || asking == owner {
        Ok(record)
    } else {
        // Not 403: that would tell a stranger that the run exists.
        Err(RunError::NotFound(id.to_owned()).into())
    }
}
