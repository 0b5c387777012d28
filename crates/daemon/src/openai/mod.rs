//! The routes for OpenAI's clients: a chat completion is a run, its content the run's answer.

mod accept;
mod answer_form;
mod cancel_on_drop;
pub mod chat;
mod completion;
mod delivery;
mod message;
mod model_names;
pub mod models;
mod problem;
mod reasoning;
mod request;
mod response;
pub mod responses;
mod run_requests;
mod streaming;
mod tools;

use actix_web::{HttpResponse, web};

use super::error::{ApiError, method_not_allowed};
use prime_agent_set::task_program::TaskPrograms;
use prime_service::requests::CheckedRequest;
use prime_settings::Settings;
use request::ChatRequest;
use run_requests::RunRequests;

/// Routes of OpenAI's that clients look for and that a run cannot answer.
const MISSING: [(&str, &str); 2] = [
    ("/v1/completions", "there is no completion of bare text"),
    ("/v1/embeddings", "there are no embeddings"),
];

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route, allowed: &'static str| {
        web::resource(path)
            .route(route)
            .default_service(web::to(move || method_not_allowed(allowed)))
    };
    config
        .service(resource("/v1/chat/completions", web::post().to(chat::complete), "POST"))
        .service(resource("/v1/responses", web::post().to(responses::respond), "POST"))
        .service(resource("/v1/models", web::get().to(models::list), "GET"))
        // The names of models contain a slash.
        .service(resource("/v1/models/{model:.+}", web::get().to(models::show), "GET"));
    for (path, what) in MISSING {
        let message = format!(
            "{what}: use POST /v1/chat/completions or POST /v1/responses; GET /docs/ shows all routes"
        );
        let missing = move || {
            let error = ApiError::not_found("no_such_route", message.clone());
            async move { Err::<HttpResponse, _>(error) }
        };
        config.service(web::resource(path).default_service(web::to(missing)));
    }
}

/// Parses a chat completion and checks its runs.
///
/// # Errors
/// The first invalid field.
pub(super) fn checked(settings: &Settings, body: &[u8]) -> Result<(), ApiError> {
    checked_chat(settings, &super::guard::json(body)?)
}

/// Parses a response and checks its run.
///
/// # Errors
/// The first invalid field.
pub(super) fn checked_response(settings: &Settings, body: &[u8]) -> Result<(), ApiError> {
    checked_chat(settings, &responses::chat_of(body)?)
}

fn checked_chat(settings: &Settings, chat: &ChatRequest) -> Result<(), ApiError> {
    let requests = RunRequests::of(settings, chat)?;
    let runs = requests
        .runs
        .iter()
        .try_for_each(|run| CheckedRequest::of(settings, &TaskPrograms::default(), run).map(drop));
    runs.map_err(|error| requests.locate(error.into()))
}
