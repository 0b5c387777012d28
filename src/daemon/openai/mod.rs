//! The daemon for OpenAI's clients: a chat completion is a run, its content the run's answer.

pub mod chat;
mod held;
mod message;
pub mod models;
mod problem;
mod reasoning;
mod request;
mod response;
mod streaming;
mod whole;
mod wishes;

use actix_web::web;

use super::error::ApiError;
use super::no_such_method;
use super::request::checked as checked_run;
use crate::settings::Settings;
use request::ChatRequest;
use wishes::Wishes;

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route, allowed: &'static str| {
        web::resource(path).route(route).default_service(web::to(move || no_such_method(allowed)))
    };
    config
        .service(resource("/v1/chat/completions", web::post().to(chat::complete), "POST"))
        .service(resource("/v1/models", web::get().to(models::list), "GET"))
        // The name of a model has a slash.
        .service(resource("/v1/models/{model:.+}", web::get().to(models::show), "GET"));
}

/// Reads a chat completion and checks its runs.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn checked(settings: &Settings, body: &[u8]) -> Result<(), ApiError> {
    let chat: ChatRequest = super::guard::json(body)?;
    let wishes = Wishes::of(settings, &chat)?;
    let runs = wishes.runs.iter().try_for_each(|run| checked_run(settings, run).map(drop));
    runs.map_err(|error| wishes.locate(error))
}
