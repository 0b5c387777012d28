//! Errors of the service as errors of routes.

use std::time::Duration;

use super::error::ApiError;
use prime_journal::JournalError;
use prime_service::requests::RequestError;
use prime_service::runs::RunError;

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let message = error.to_string();
        match error {
            RequestError::Field { field, reason } => Self::bad_field(&field, reason),
            RequestError::Problem(error) => Self::bad_value(&error.path, message),
            RequestError::NoTask => Self::bad_value("task", message),
            RequestError::Settings(_) => Self::bad_request(message),
            RequestError::Run(error) => error.into(),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let second = Duration::from_secs(1);
        let message = error.to_string();
        match error {
            RunError::NotFound(_) => Self::not_found("no_such_run", message),
            RunError::NoSuchStep(_) => Self::not_found("no_such_step", message),
            RunError::NoSuchApproval { .. } => Self::not_found("no_such_approval", message),
            RunError::NoSuchTrajectory { .. } => Self::not_found("no_such_trajectory", message),
            RunError::Full { .. } => Self::too_many("queue_full", message, second),
            RunError::OwnerFull { .. } => Self::too_many("too_many_open_runs", message, second),
            RunError::OwnerWaits { .. } => Self::too_many("too_many_waiting_runs", message, second),
            RunError::DayPaid { wait_ms, .. } => {
                Self::too_many("daily_cost_spent", message, Duration::from_millis(wait_ms.into()))
            }
            RunError::RateReached { wait_ms, .. } => {
                Self::too_many("run_rate_exceeded", message, Duration::from_millis(wait_ms))
            }
            RunError::Late { .. } => Self::bad_field("deadline", message),
            RunError::PriorityTooHigh { .. } => Self::bad_field("priority", message),
            RunError::KeySpent(_) => Self::gone("run_removed", message),
            RunError::Draining => Self::unavailable("draining", message, second * 5),
            RunError::EngineLost(_) => Self::unavailable("engine_lost", message, second * 5),
            RunError::NotWritable(_) => Self::unavailable("journal_not_writable", message, second),
            RunError::NotFlagged { .. } => Self::unprocessable("not_flagged", Some("seq"), message),
            RunError::KeyReused(_) => {
                Self::unprocessable("idempotency_key_reused", Some("Idempotency-Key"), message)
            }
            RunError::Labels(_) => Self::bad_field("labels", message),
            RunError::Agents(_) => Self::bad_field("agents", message),
            RunError::Conflict(_) => Self::conflict("conflict", message),
            RunError::Verified(_) => Self::conflict("run_is_verified", message),
            RunError::NotOver(_) => Self::conflict("run_is_open", message),
            RunError::Journal(JournalError::NoSuchRun { .. }) => Self::bad_field("after", message),
            RunError::Journal(JournalError::NotWritable(_)) => {
                Self::unavailable("journal_not_writable", message, second)
            }
            RunError::Journal(_) | RunError::Unreadable(_) => {
                tracing::error!(error = %message, "a request failed");
                Self::internal(message)
            }
        }
    }
}
