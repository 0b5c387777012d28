//! The OpenAPI document: `/openapi.json`, and a page to read it with.
//!
//! - `document`: the document and its route. `shared_responses`, `named_variants`,
//!   `integer_bounds`: what is added to it after utoipa has derived it from the routes.
//! - `json_schema`: its schemas one at a time. `swagger_ui`: the page.

mod document;
mod integer_bounds;
mod json_schema;
mod named_variants;
mod shared_responses;
mod swagger_ui;

use actix_web::web;

pub use json_schema::json_schema;

pub fn configure(config: &mut web::ServiceConfig) {
    config.configure(document::configure).configure(swagger_ui::configure);
}
