//! Who asks, and what they may see: the owner of a request, its rights, and the runs that are
//! theirs.

use actix_web::{HttpMessage as _, HttpRequest};

use super::error::ApiError;
use super::guard::{Owner, Rights};
use super::state::State;
use prime_journal::Assigned;
use prime_service::runs::{RunError, RunRecord};

/// The assignee that stands for the one who asks.
pub(super) const MYSELF: &str = "me";
/// In lists, what stands for no assignee.
pub(super) const NOBODY: &str = "none";

/// The owner of a request; empty without keys.
pub(super) fn owner_of(request: &HttpRequest) -> String {
    request.extensions().get::<Owner>().map_or_else(String::new, |owner| owner.name.clone())
}

/// Who asks.
pub(super) fn asking(request: &HttpRequest) -> Owner {
    Owner { name: owner_of(request), rights: rights_of(request) }
}

/// The name of somebody who decides about a step: that of the key, or `local` without keys.
pub(super) fn reviewer(asking: &Owner) -> String {
    if asking.name.is_empty() { "local" } else { &asking.name }.to_owned()
}

/// The assignment that a list asks for.
pub(super) fn assigned(name: String, asking: &Owner) -> Assigned {
    match name.as_str() {
        NOBODY => Assigned::Nobody,
        MYSELF => Assigned::To(reviewer(asking)),
        _ => Assigned::To(name),
    }
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
    Err(admin_needed(what))
}

fn admin_needed(what: &str) -> ApiError {
    let message = format!("only a key with `admin = true` {what}: ask the operator of this daemon");
    ApiError::forbidden("admin_key_needed", message)
}

/// Whose runs a listing for this owner shows: the owner's; without keys, everybody's.
pub(super) fn shown_to(owner: String) -> Option<String> {
    Some(owner).filter(|owner| !owner.is_empty())
}

/// The name that stands for all keys.
pub(super) const ALL_KEYS: &str = "*";

/// The owner whose runs a listing for this key shows: `None` for all.
pub(super) fn listed_owner(asking: &Owner, key: Option<&str>) -> Result<Option<String>, ApiError> {
    match key {
        None => Ok(shown_to(asking.name.clone())),
        Some(ALL_KEYS) if asking.rights == Rights::Admin => Ok(None),
        Some(key) if asking.rights == Rights::Admin || key == asking.name => {
            Ok(Some(key.to_owned()))
        }
        Some(_) => Err(admin_needed("may list the runs of other keys")),
    }
}

/// A run that the request may see: its owner's; any with an admin's key, or without keys.
pub(super) async fn authorized_run(
    state: &State,
    request: &HttpRequest,
    id: &str,
) -> Result<RunRecord, ApiError> {
    owned_run(state, &asking(request), id).await
}

/// A run that an owner may see: its own; any if it is an admin, or has no name.
pub(super) async fn owned_run(
    state: &State,
    asking: &Owner,
    id: &str,
) -> Result<RunRecord, ApiError> {
    Ok(run_and_owner(state, asking, id).await?.1)
}

/// The owner of a run that the one who asks may see.
pub(super) async fn run_owner(state: &State, asking: &Owner, id: &str) -> Result<String, ApiError> {
    Ok(run_and_owner(state, asking, id).await?.0)
}

async fn run_and_owner(
    state: &State,
    asking: &Owner,
    id: &str,
) -> Result<(String, RunRecord), ApiError> {
    let (owner, record) = state.runs.reader().get(id).await?;
    if asking.rights == Rights::Admin || asking.name.is_empty() || asking.name == owner {
        Ok((owner, record))
    } else {
        // Not 403: that would tell a stranger that the run exists.
        Err(RunError::NotFound(id.to_owned()).into())
    }
}
