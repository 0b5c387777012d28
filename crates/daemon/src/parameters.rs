//! Parameters in paths and queries.

use actix_web::{HttpRequest, web};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Entries per page: most, and default.
const PAGE_MAX: u32 = 1_000;
const PAGE: u32 = 100;

/// Parses the query string.
pub(super) fn parse_query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, ApiError> {
    let query = web::Query::<T>::from_query(request.query_string());
    query
        .map(web::Query::into_inner)
        .map_err(|error| ApiError::bad_request(format!("the query: {error}")))
}

/// The number of entries of a page, from the parameter `limit`.
pub(super) fn page_limit(wanted: Option<u32>) -> Result<u32, ApiError> {
    let limit = wanted.unwrap_or(PAGE);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(ApiError::bad_field("limit", format!("is {limit}; give 1 to {PAGE_MAX}")))
    }
}

/// Reads the number of a step's event in a path.
pub(super) fn step_number(text: &str) -> Result<u64, ApiError> {
    // 404 and not 400: a path that names no event names nothing.
    text.parse().map_err(|_| {
        ApiError::not_found("no_such_step", format!("{text:?} is not the number of an event"))
    })
}
