//! The interface described by itself: `/openapi.json`, and a page to read it with.

use actix_web::{HttpResponse, web};
use utoipa::OpenApi;
use utoipa_swagger_ui::SwaggerUi;

use super::{catalog, events, health, measured, no_such_method, openai, runs, verify};

/// Every route that clients may rely on.
#[derive(OpenApi)]
#[openapi(
    info(description = "LLM agents solve algorithmic problems step by step, and every step is checked."),
    paths(
        runs::submit,
        runs::list,
        runs::show,
        runs::cancel,
        runs::fork,
        runs::collect,
        events::events,
        events::trace,
        verify::judge,
        catalog::list,
        catalog::agents,
        openai::chat::complete,
        openai::models::list,
        openai::models::show,
        health::livez,
        health::readyz,
        measured::metrics,
    ),
    tags(
        (name = "runs", description = "Runs: accepted when they are durable, and never lost."),
        (name = "catalog", description = "What can be asked for."),
        (name = "openai", description = "The same runs for OpenAI's clients."),
        (name = "operations", description = "For whoever keeps the daemon."),
    ),
)]
pub struct Document;

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/openapi.json")
                .route(web::get().to(document))
                .default_service(web::to(|| no_such_method("GET"))),
        )
        .service(SwaggerUi::new("/docs/{_:.*}").config(utoipa_swagger_ui::Config::from("/openapi.json")));
}

async fn document() -> HttpResponse {
    HttpResponse::Ok().json(Document::openapi())
}
