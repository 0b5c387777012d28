//! The routes by which clients upload and delete task modules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{ApiError, ErrorBody};
use super::guard::body_of;
use super::parameters::parse_query;
use super::request_context::owner_of;
use super::state::State;
use prime_journal::TaskVersion;
use prime_service::requests::TaskSlug;
use prime_service::runs::{UploadError, timestamp};

/// A version of an uploaded task.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleVersion {
    /// SHA-256 of the module in hex.
    pub digest: String,
    pub bytes: u64,
    #[schema(format = DateTime)]
    pub uploaded_at: String,
    /// When another version took its place.
    #[schema(format = DateTime)]
    pub replaced_at: Option<String>,
}

/// The module of an uploaded task.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UploadedModule {
    /// SHA-256 of the module in hex: the version that new runs have.
    pub digest: String,
    pub bytes: u64,
    #[schema(format = DateTime)]
    pub uploaded_at: String,
    /// Earlier versions that are stored still: for an hour, and while open runs use them.
    pub earlier: Vec<ModuleVersion>,
}

/// A task that was uploaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UploadedTask {
    /// The name by which runs ask for it.
    pub task: String,
    /// SHA-256 of the module in hex.
    pub digest: String,
    pub bytes: u64,
    #[schema(format = DateTime)]
    pub uploaded_at: String,
}

/// The name of an upload.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadQuery {
    /// The task's name, up to 64 lower-case letters, digits, `-` and `_`; by default the one that
    /// the module declares.
    #[param(nullable = false, pattern = "^[a-z0-9_-]{1,64}$")]
    pub name: Option<String>,
}

impl From<TaskVersion> for ModuleVersion {
    fn from(version: TaskVersion) -> Self {
        Self {
            digest: version.digest,
            bytes: version.bytes,
            uploaded_at: timestamp(version.uploaded_ms),
            replaced_at: version.released_ms.map(timestamp),
        }
    }
}

/// The modules of an owner's tasks by their names.
pub fn modules_of(versions: Vec<TaskVersion>) -> BTreeMap<String, UploadedModule> {
    let mut modules = BTreeMap::<String, UploadedModule>::new();
    // The current version of a task comes first; what is left of a deleted one has none.
    for version in versions {
        let name = version.name.clone();
        let is_current = version.released_ms.is_none();
        let version = ModuleVersion::from(version);
        if is_current {
            let ModuleVersion { digest, bytes, uploaded_at, .. } = version;
            modules
                .insert(name, UploadedModule { digest, bytes, uploaded_at, earlier: Vec::new() });
        } else if let Some(module) = modules.get_mut(&name) {
            module.earlier.push(version);
        }
    }
    modules
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let message = error.to_string();
        match error {
            UploadError::Off => Self::forbidden("uploads_off", message),
            UploadError::Module(_) => Self::unprocessable("bad_module", None, message),
            UploadError::Name(_) => Self::bad_field("name", message),
            UploadError::Configured(_) => Self::conflict("name_taken", message),
            UploadError::Full(_) => Self::conflict("uploads_full", message),
            UploadError::Run(error) => error.into(),
        }
    }
}

/// A WebAssembly module, as it is.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "the document describes it; the body is read in parts")]
struct ModuleBytes(Vec<u8>);

/// Marks a key as uploading a module until it is dropped.
struct Uploading<'s> {
    state: &'s State,
    owner: String,
}

impl<'s> Uploading<'s> {
    /// `None` while the key uploads another one.
    fn begin(state: &'s State, owner: &str) -> Option<Self> {
        let is_first = keys(state).insert(owner.to_owned());
        is_first.then(|| Self { state, owner: owner.to_owned() })
    }
}

impl Drop for Uploading<'_> {
    fn drop(&mut self) {
        keys(self.state).remove(&self.owner);
    }
}

fn keys(state: &State) -> MutexGuard<'_, BTreeSet<String>> {
    state.uploading.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Uploads a WebAssembly module as a task.
///
/// The body is the module itself, such as `curl --data-binary @count.wasm` sends it. The daemon
/// checks the module first: it must declare its task, and answer for the start and a first step of
/// the example that it declares. The task belongs to the key; no other key sees it or runs it. A
/// module under the name of a task that was uploaded before is a new version of it: runs keep the
/// one that they were accepted with.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "catalog", operation_id = "upload_task", params(UploadQuery),
    request_body(content = ModuleBytes, content_type = "application/octet-stream", description = "A WebAssembly module (docs/your-task.md)"),
    responses(
        (status = 200, description = "The task has this version already", body = UploadedTask),
        (status = 201, description = "New runs of the task have this version from now on", body = UploadedTask),
        (status = 403, description = "This daemon accepts no uploads; or, without keys, the request is for another host or from a page of another origin", body = ErrorBody),
        (status = 409, description = "The name is that of another task, or the key has no room for the module", body = ErrorBody),
        (status = 422, description = "The module cannot be used; the message says why", body = ErrorBody),
    ),
)]
pub async fn upload(
    state: web::Data<State>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let UploadQuery { name } = parse_query(&request)?;
    let owner = owner_of(&request);
    let _upload = Uploading::begin(&state, &owner).ok_or_else(|| {
        let message = "this key is uploading another module: try again when that is done";
        ApiError::too_many("too_many_uploads", message, Duration::from_secs(1))
    })?;

    let bytes_max = state.runs.app().settings().uploads.module_bytes_max;
    let mut payload: Payload = payload.into_inner();
    let module = body_of(&request, &mut payload, bytes_max, "uploads.module_bytes_max").await?;
    if module.starts_with(b"{") {
        return Err(ApiError::bad_request(
            "the body is JSON: send the module itself, as `curl --data-binary @FILE.wasm` does",
        ));
    }

    // Each takes a thread while it is checked, for as long as the fuel of some answers lasts.
    let turn = state.uploads.acquire().await;
    let _turn = turn.map_err(|closed| ApiError::internal(closed.to_string()))?;
    let uploaded = state.runs.upload(&owner, name, module.to_vec()).await?;
    let TaskVersion { name, digest, bytes, uploaded_ms, .. } = uploaded.version;
    let task = UploadedTask { task: name, digest, bytes, uploaded_at: timestamp(uploaded_ms) };
    let mut response = if uploaded.is_new { HttpResponse::Created() } else { HttpResponse::Ok() };
    Ok(response.json(task))
}

/// Deletes a task that was uploaded with this key.
///
/// Open runs keep its module. A task that is not uploaded cannot be deleted.
#[utoipa::path(
    delete, path = "/v1/tasks/{slug}", tag = "catalog", operation_id = "delete_task", params(("slug" = TaskSlug, description = "The task's name")),
    responses(
        (status = 204, description = "It is deleted"),
    ),
)]
pub async fn delete(
    slug: web::Path<String>,
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    if state.runs.delete_task(&owner_of(&request), &slug).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        let message = format!(
            "no task {:?} was uploaded with this key: GET /v1/tasks lists the uploaded ones with \
             their `module`",
            slug.as_str()
        );
        Err(ApiError::not_found("no_such_task", message))
    }
}
