//! The routes for OpenAI's clients: a chat completion is a run, its content the run's answer.

mod cancel_on_drop;
pub mod chat;
mod completion;
mod message;
pub mod models;
mod problem;
mod reasoning;
mod request;
mod response;
mod run_requests;
mod streaming;

use actix_web::web;

use super::error::ApiError;
use super::method_not_allowed;
use super::resolve::checked as checked_run;
use crate::settings::Settings;
use request::ChatRequest;
use run_requests::RunRequests;

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route, allowed: &'static str| {
        web::resource(path).route(route).default_service(web::to(move || method_not_allowed(allowed)))
    };
    config
        .service(resource("/v1/chat/completions", web::post().to(chat::complete), "POST"))
        .service(resource("/v1/models", web::get().to(models::list), "GET"))
        // The names of models contain a slash.
        .service(resource("/v1/models/{model:.+}", web::get().to(models::show), "GET"));
}

/// Parses a chat completion and checks its runs.
///
/// # Errors
/// The first invalid field.
pub(super) fn checked(settings: &Settings, body: &[u8]) -> Result<(), ApiError> {
    let chat: ChatRequest = super::guard::json(body)?;
    let requests = RunRequests::of(settings, &chat)?;
    let runs = requests.runs.iter().try_for_each(|run| checked_run(settings, run).map(drop));
    runs.map_err(|error| requests.locate(error))
}
