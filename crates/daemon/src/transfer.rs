//! Routes by which runs leave this daemon and come from others.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures::StreamExt as _;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::body_of;
use super::journal::node_name;
use super::parameters::parse_query;
use super::request_context::{authorized_run, needs_admin, owner_of};
use super::state::State;
use prime_service::runs::{BundleError, RunRecord};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/runs/import")
                .route(web::post().to(import))
                .default_service(web::to(|| method_not_allowed("POST"))),
        )
        .service(
            web::resource("/v1/runs/{id}/export")
                .route(web::get().to(export))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

/// The forms in which a run leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    /// The run with its whole chain, for `POST /v1/runs/import` of another daemon.
    #[default]
    Bundle,
    /// OpenTelemetry spans with the names for generative AI: lines of OTLP's JSON, as a collector's
    /// file receiver reads them.
    Otel,
    /// A row with the columns of `bench export`, and those that only runs have.
    Dataset,
}

/// How a run leaves.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// The form; `bundle` by default.
    #[serde(default, rename = "as")]
    #[param(inline)]
    pub form: ExportForm,
    /// With `otel`: whether spans have what models were asked and answered, as far as the journal
    /// keeps it, and the answer; false by default.
    pub content: Option<bool>,
}

/// A bundle, as `GET /v1/runs/{id}/export` sends it.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "the document describes it; the body is read in parts")]
struct Bundle(Vec<u8>);

impl From<BundleError> for ApiError {
    fn from(error: BundleError) -> Self {
        let message = error.to_string();
        match error {
            BundleError::Newer(_) => Self::unprocessable("newer_bundle", None, message),
            BundleError::TooLarge { .. } => Self::part_too_large(message),
            BundleError::Differs(_) => Self::conflict("run_exists", message),
            BundleError::Run(error) => error.into(),
            BundleError::NoBundle(_)
            | BundleError::CutOff { .. }
            | BundleError::Broken { .. }
            | BundleError::Head(_) => Self::unprocessable("bad_bundle", None, message),
        }
    }
}

/// Exports a run that is over.
///
/// JSON Lines in each form. A bundle that breaks off lacks its last line, so that it is not taken
/// for a whole one.
#[utoipa::path(
    get, path = "/v1/runs/{id}/export", tag = "runs", operation_id = "export_run",
    params(("id", description = "The run's `id`"), ExportQuery),
    responses(
        (status = 200, description = "JSON Lines", content_type = "application/jsonl", body = String),
        (status = 409, description = "The run is not over (`run_is_open`), or a data set's row needs the program of its task, which fails", body = ErrorBody),
    ),
)]
pub async fn export(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ExportQuery { form, content } = parse_query(&request)?;
    if content.is_some() && form != ExportForm::Otel {
        return Err(ApiError::bad_field("content", "goes with as=otel alone"));
    }
    authorized_run(&state, &request, &id).await?;

    let reader = state.runs.reader();
    let mut response = HttpResponse::Ok();
    response.content_type("application/jsonl");
    Ok(match form {
        ExportForm::Bundle => {
            let lines = reader.bundle(&id, &node_name()).await?;
            response.streaming(lines.map(|lines| lines.map(Bytes::from)))
        }
        ExportForm::Otel => {
            let lines = reader.otel(&id, content.unwrap_or(false)).await?;
            // An empty piece would end the body.
            let lines =
                lines.filter(|lines| std::future::ready(!lines.as_ref().is_ok_and(Vec::is_empty)));
            response.streaming(lines.map(|lines| lines.map(Bytes::from)))
        }
        ExportForm::Dataset => {
            let row = reader.dataset_row(&id).await?;
            response.body(serde_json::to_string(&row).expect("invariant: rows serialise") + "\n")
        }
    })
}

/// Marks an owner as importing a run until it is dropped.
struct Importing<'s> {
    state: &'s State,
    owner: String,
}

impl<'s> Importing<'s> {
    /// `None` while the owner imports another one.
    fn begin(state: &'s State, owner: &str) -> Option<Self> {
        let is_first = importing(state).insert(owner.to_owned());
        is_first.then(|| Self { state, owner: owner.to_owned() })
    }
}

impl Drop for Importing<'_> {
    fn drop(&mut self) {
        importing(self.state).remove(&self.owner);
    }
}

fn importing(state: &State) -> MutexGuard<'_, BTreeSet<String>> {
    state.importing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Imports a run that another daemon has exported as a bundle.
///
/// The daemon recomputes the chain and replays the events; it judges no step again. The run keeps
/// its id, its records and its chain, belongs to the request's key, and its record says where it
/// comes from (`imported`). Importing the same run again changes nothing.
#[utoipa::path(
    post, path = "/v1/runs/import", tag = "runs", operation_id = "import_run",
    request_body(content = Bundle, content_type = "application/octet-stream", description = "The bundle, unencoded; at most `server.import_bytes_max` bytes"),
    responses(
        (status = 201, description = "It is here now, durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 200, description = "The same run was here already", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 403, description = "Only an admin's key imports runs; or, without keys, the request is for another host or from a page of another origin", body = ErrorBody),
        (status = 409, description = "There is another run with its id (`run_exists`), or the task of the run is not here", body = ErrorBody),
        (status = 422, description = "It is no bundle, is cut off, or its chain is broken (`bad_bundle`); or a later version wrote it (`newer_bundle`)", body = ErrorBody),
    ),
)]
pub async fn import(
    state: web::Data<State>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    needs_admin(&request, "imports runs")?;
    let owner = owner_of(&request);
    let _importing = Importing::begin(&state, &owner).ok_or_else(|| {
        let message = "this key is importing another run: try again when that is done";
        ApiError::too_many("too_many_imports", message, Duration::from_secs(1))
    })?;

    let bytes_max = state.runs.app().settings().server.import_bytes_max;
    let mut payload: Payload = payload.into_inner();
    let bundle = body_of(&request, &mut payload, bytes_max, "server.import_bytes_max").await?;
    let arrived = state.runs.import(&owner, bundle).await?;

    let mut response = if arrived.is_new { HttpResponse::Created() } else { HttpResponse::Ok() };
    Ok(response
        .insert_header(("Location", format!("/v1/runs/{}", arrived.record.id)))
        .json(arrived.record))
}
