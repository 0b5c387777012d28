//! Parses and checks arbitrary requests as the routes do, without a daemon: the entry point of the fuzzer.

use actix_web::web::Query;

use super::error::ApiError;
use super::guard::json;
use super::resolve::checked;
use super::wire::{CollectRequest, ListQuery, ReviewRequest, RunRequest};
use super::{openai, verify};
use crate::settings::Settings;

/// Reads a body as each route with a body would, and as the query of the listing; judges what `/v1/verify` would judge.
///
/// # Errors
/// The error that each route would respond with.
pub fn read_as_each_route(settings: &Settings, body: &[u8]) -> [Result<(), ApiError>; 7] {
    [
        json::<RunRequest>(body).and_then(|request| checked(settings, &request).map(drop)),
        openai::checked(settings, body),
        openai::checked_response(settings, body),
        verify::judged(body, &verify::Abandoned::default()).map(drop),
        json::<CollectRequest>(body).map(drop),
        json::<ReviewRequest>(body).map(drop),
        Query::<ListQuery>::from_query(&String::from_utf8_lossy(body))
            .map(drop)
            .map_err(|error| ApiError::bad_request(error.to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_reads_its_own_requests() {
        let settings = Settings::default();
        let read = |body: &str| read_as_each_route(&settings, body.as_bytes()).map(|result| result.is_ok());
        assert_eq!(read(r#"{"task": "n-queens", "fanout": 2}"#), [true, false, false, false, false, false, false]);
        assert_eq!(read(r#"{"task": "n-queens", "fanout": 0}"#), [false; 7]);
        assert_eq!(read(r#"{"older_than_days": 1}"#), [false, false, false, false, true, false, false]);
        assert_eq!(read("limit=3&status=running"), [false, false, false, false, false, false, true]);
        assert_eq!(read(r#"{"seq": 1, "verdict": "accept"}"#), [false, false, false, false, false, true, false]);
        let chat = r#"{"model": "prime", "messages": [{"role": "user", "content": "{\"task\": \"n-queens\"}"}]}"#;
        assert_eq!(read(chat), [false, true, false, false, false, false, false]);
        let response = r#"{"model": "prime", "input": "{\"task\": \"n-queens\"}"}"#;
        assert_eq!(read(response), [false, false, true, false, false, false, false]);
        let judged = r#"{"task": "n-queens", "difficulty": "easy", "index": 0, "action": "x"}"#;
        assert_eq!(read(judged), [false, false, false, true, false, false, false]);
    }
}
