//! The route that reloads the configuration.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::apply::{ReloadRequest, Reloaded};
use crate::error::{ApiError, ErrorBody, method_not_allowed};
use crate::request_context::needs_admin;
use crate::state::State;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/reload")
            .route(web::post().to(reload))
            .default_service(web::to(|| method_not_allowed("POST"))),
    );
}

/// Reloads the configuration.
///
/// Like SIGHUP: files, definitions and templates are read again and apply to new runs; open runs
/// keep theirs. With an error anywhere, nothing changes. The response may take as long as loading a
/// model.
#[utoipa::path(
    post, path = "/v1/reload", tag = "operations", operation_id = "reload",
    responses(
        (status = 200, description = "Reloaded", body = Reloaded),
        (status = 403, description = "Not an admin's key; without keys, another host or origin", body = ErrorBody),
        (status = 409, description = "A reload is in progress", body = ErrorBody),
        (status = 422, description = "The configuration has an error, which the message names; nothing has changed", body = ErrorBody),
        (status = 501, description = "This process has no configuration to reload", body = ErrorBody),
        (status = 503, description = "The daemon is stopping", body = ErrorBody),
    ),
)]
pub async fn reload(
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    needs_admin(&request, "may reload the configuration")?;

    let stopping =
        || ApiError::unavailable("draining", "the daemon is stopping", Duration::from_secs(5));
    let Some(reloads) = &state.reloads else {
        return Err(ApiError::not_implemented(
            "this process has no configuration to reload: restart it",
        ));
    };

    let (reply, reloaded) = oneshot::channel();
    reloads.try_send(ReloadRequest { reply }).map_err(|error| match error {
        TrySendError::Full(_) => {
            ApiError::conflict("reload_under_way", "a reload is in progress: wait for it to finish")
        }
        TrySendError::Closed(_) => stopping(),
    })?;

    let reloaded = reloaded.await.map_err(|_| stopping())?;
    let reloaded = reloaded.map_err(|error| {
        let message = format!("the configuration was refused, everything stays as it is: {error}");
        ApiError::unprocessable("configuration_refused", None, message)
    })?;

    Ok(HttpResponse::Ok().json(reloaded))
}
