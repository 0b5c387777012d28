//! What goes over the wire: requests, records of runs, errors.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::report::RunResult;
use crate::tasks::Difficulty;

/// `POST /v1/runs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    pub task: String,
    pub difficulty: Option<Difficulty>,
    pub index: Option<u32>,
    pub base_seed: Option<u64>,
    /// The task's own input, instead of difficulty and index.
    pub input: Option<Value>,
    pub fanout: Option<u32>,
    pub max_rounds: Option<u32>,
    pub seed: Option<u64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    #[serde(default)]
    pub budget: BudgetRequest,
}

/// Narrower limits than the configuration's.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetRequest {
    pub steps: Option<u64>,
    pub tokens: Option<u64>,
    pub wall_ms: Option<u64>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Running,
    Verified,
    Unverified,
    Failed,
    Cancelled,
}

/// `GET /v1/runs/{id}`: the result's fields stand beside these once there is one.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    pub id: String,
    pub status: Status,
    #[serde(flatten)]
    pub progress: Progress,
}

/// What is known of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Progress {
    Open { task: &'static str, instance: String, config_hash: String },
    Done(Box<RunResult>),
}

/// An error as clients see it: `{"error": {"message", "field"}}`.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("{message}")]
    BadRequest { field: Option<String>, message: String },
    #[error("there is no run {0}; runs are kept in memory and end with the process")]
    NoSuchRun(String),
    #[error("{live} runs are live, and server.queue_max is {limit}: try again later")]
    Full { live: usize, limit: u32 },
    #[error("no such resource; see the README for the routes")]
    NoSuchRoute,
    #[error("this method is not allowed here")]
    NoSuchMethod,
    #[error("the body has more than {limit} bytes (server.body_bytes_max)")]
    TooLarge { limit: u64 },
}

impl WireError {
    pub fn bad(field: &str, message: impl std::fmt::Display) -> Self {
        Self::BadRequest { field: Some(field.to_owned()), message: format!("field `{field}`: {message}") }
    }
}

impl ResponseError for WireError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::BadRequest { .. } => StatusCode::BAD_REQUEST,
            Self::NoSuchRun(_) | Self::NoSuchRoute => StatusCode::NOT_FOUND,
            Self::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let field = if let Self::BadRequest { field, .. } = self { field.clone() } else { None };
        let mut response = HttpResponse::build(self.status_code());
        if let Self::Full { .. } = self {
            response.insert_header(("Retry-After", "1"));
        }
        response.json(json!({ "error": { "message": self.to_string(), "field": field } }))
    }
}
