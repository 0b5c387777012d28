//! Parses and checks arbitrary requests as the routes do, without a daemon: the entry point of the
//! fuzzer.

use super::error::ApiError;
use super::guard::json;
use super::parameters::read_query;
use super::run_list::ListQuery;
use super::try_step::TryRequest;
use super::wire::{
    ApprovalRequest, AssignRequest, CollectRequest, ForkRequest, RetryRequest, ReviewRequest,
};
use super::{openai, verify};
use prime_agent_set::task_program::TaskPrograms;
use prime_service::requests::{CheckedRequest, RunRequest};
use prime_settings::Settings;

/// Reads a body as each route with a body would, and as the query of the listing; judges what
/// `/v1/verify` would judge.
///
/// # Errors
/// The error that each route would respond with.
pub fn read_as_each_route(settings: &Settings, body: &[u8]) -> [Result<(), ApiError>; 12] {
    let tasks = TaskPrograms::default();
    [
        json::<RunRequest>(body)
            .and_then(|request| Ok(CheckedRequest::of(settings, &tasks, &request).map(drop)?)),
        openai::checked(settings, body),
        openai::checked_response(settings, body),
        verify::judged(body, &verify::Abandoned::default(), &tasks).map(drop),
        json::<CollectRequest>(body).map(drop),
        json::<ReviewRequest>(body).map(drop),
        json::<AssignRequest>(body).map(drop),
        json::<ApprovalRequest>(body).map(drop),
        json::<ForkRequest>(body).map(drop),
        json::<RetryRequest>(body).map(drop),
        json::<TryRequest>(body).map(drop),
        read_query::<ListQuery>(&String::from_utf8_lossy(body)).map(drop),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_reads_its_own_requests() {
        let settings = Settings::default();
        // The numbers of the routes that accept the body, in the order above.
        let read = |body: &str| -> Vec<usize> {
            let results = read_as_each_route(&settings, body.as_bytes());
            results
                .iter()
                .enumerate()
                .filter(|(_, result)| result.is_ok())
                .map(|(route, _)| route)
                .collect()
        };

        let none: [usize; 0] = [];

        assert_eq!(read(r#"{"task": "n-queens", "fanout": 2}"#), [0]);
        assert_eq!(read(r#"{"task": "n-queens", "fanout": 0}"#), none);
        assert_eq!(read(r#"{"older_than_days": 1}"#), [4]);
        assert_eq!(read("limit=3&status=running"), [11]);
        assert_eq!(read(r#"{"seq": 1, "verdict": "accept"}"#), [5]);
        assert_eq!(read(r#"{"seq": 1, "assignee": null}"#), [6]);
        assert_eq!(read(r#"{"verdict": "edit", "line": "x"}"#), [7]);
        assert_eq!(read(r#"{"line": "x"}"#), [8]);
        assert_eq!(read(r#"{"agents": {"executor": "reference"}}"#), [8, 9]);
        assert_eq!(read(r#"{"exclude": false}"#), [9]);
        assert_eq!(read(r#"{"role": "verifier", "action": "x"}"#), [10]);

        let chat = r#"{"model": "prime", "messages": [{"role": "user", "content": "{\"task\": \"n-queens\"}"}]}"#;
        assert_eq!(read(chat), [1]);
        let response = r#"{"model": "prime", "input": "{\"task\": \"n-queens\"}"}"#;
        assert_eq!(read(response), [2]);
        let judged = r#"{"task": "n-queens", "difficulty": "easy", "index": 0, "action": "x"}"#;
        assert_eq!(read(judged), [3]);
    }
}
