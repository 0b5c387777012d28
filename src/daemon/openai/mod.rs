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

use super::no_such_method;

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
