//! Routes of approvals: the steps that wait for a person or a program, and what is decided.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, Owner, json};
use super::parameters::{check_new_line, page_limit, parse_query};
use super::request_context::{asking, authorized_run, listed_owner, owned_run, reviewer};
use super::state::State;
use super::wire::{
    ApprovalList, ApprovalRequest, ApprovalsQuery, RunApprovalsQuery, WaitingApprovals,
};
use prime_journal::ApprovalQuery;
use prime_protocol::ApprovalVerdict;
use prime_service::runs::{ApprovalRecord, NewDecision};

/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 4_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/approvals")
                .route(web::get().to(waiting))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/runs/{id}/approvals")
                .route(web::get().to(list))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/runs/{id}/approvals/{number}")
                .route(web::post().to(decide))
                .default_service(web::to(|| method_not_allowed("POST"))),
        );
}

/// Lists the steps that wait for approval.
///
/// The steps of all runs that the key may see, in the order in which they began to wait.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "runs", operation_id = "list_waiting_approvals",
    params(ApprovalsQuery),
    responses(
        (status = 200, description = "A page of steps", body = WaitingApprovals),
        (status = 403, description = "Only an admin's key may name other keys; or, without keys, the request is for another host or from a page of another origin", body = ErrorBody),
    ),
)]
pub async fn waiting(
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let query = parse_query(&request)?;
    Ok(HttpResponse::Ok().json(waiting_for(&state, &asking(&request), query).await?))
}

/// The steps that wait for somebody who asks.
pub(super) async fn waiting_for(
    state: &State,
    asking: &Owner,
    query: ApprovalsQuery,
) -> Result<WaitingApprovals, ApiError> {
    let ApprovalsQuery { after, limit, key } = query;
    let owner = listed_owner(asking, key.as_deref())?;
    let query = ApprovalQuery { owner, after: after.unwrap_or(0), limit: page_limit(limit)? };
    let (approvals, next) = state.runs.waiting_approvals(query).await?;
    Ok(WaitingApprovals { approvals, next })
}

/// Lists the approvals of a run.
///
/// The steps that wait, and those that were decided, by number.
#[utoipa::path(
    get, path = "/v1/runs/{id}/approvals", tag = "runs", operation_id = "list_approvals",
    params(("id", description = "The run's `id`"), RunApprovalsQuery),
    responses((status = 200, description = "A page of approvals", body = ApprovalList)),
)]
pub async fn list(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let RunApprovalsQuery { after, limit } = parse_query(&request)?;
    let (after, limit) = (after.unwrap_or(0), page_limit(limit)? as usize);
    authorized_run(&state, &request, &id).await?;

    let mut approvals = state.runs.approvals_of(&id).await?;
    approvals.retain(|approval| approval.number > after);
    let has_more = approvals.len() > limit;
    approvals.truncate(limit);
    let next = approvals.last().filter(|_| has_more).map(|approval| approval.number);
    Ok(HttpResponse::Ok().json(ApprovalList { approvals, next }))
}

/// Decides about a step that waits.
///
/// The first decision stands. `accept` commits the line; `reject` refuses it, and the executor
/// learns the reason; `edit` puts `line` in its place, which the verifier judges; `end` ends the run
/// with what is committed. A run that has left the memory is queued again.
#[utoipa::path(
    post, path = "/v1/runs/{id}/approvals/{number}", tag = "runs", operation_id = "decide_approval",
    params(
        ("id", description = "The run's `id`"),
        ("number" = u32, Path, description = "The number of the approval in its run"),
    ),
    request_body(content = ApprovalRequest, example = json!({"verdict": "reject", "reason": "7 is not a prime"})),
    responses(
        (status = 200, description = "The approval; the decision is durable", body = ApprovalRecord),
        (status = 409, description = "It was decided before, or the run is over; the message says by whom and how", body = ErrorBody),
    ),
)]
pub async fn decide(
    state: web::Data<State>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let (id, number) = path.into_inner();
    let wanted = json(&body.0)?;
    let number = number.parse().map_err(|_| {
        ApiError::not_found("no_such_approval", format!("{number:?} is no number of an approval"))
    })?;
    let record = decide_for(&state, &asking(&request), &id, number, wanted).await?;
    Ok(HttpResponse::Ok().json(record))
}

/// Decides for somebody who may see the run.
pub(super) async fn decide_for(
    state: &State,
    asking: &Owner,
    id: &str,
    number: u32,
    wanted: ApprovalRequest,
) -> Result<ApprovalRecord, ApiError> {
    let ApprovalRequest { verdict, reason, line } = wanted;
    if reason.len() > REASON_BYTES_MAX {
        let message = format!("has {} bytes; give at most {REASON_BYTES_MAX}", reason.len());
        return Err(ApiError::bad_field("reason", message));
    }
    check_line(verdict, line.as_deref())?;

    owned_run(state, asking, id).await?;
    let new = NewDecision { verdict, reason, line, by: reviewer(asking) };
    Ok(state.runs.decide(id, number, new).await?)
}

/// Checks that there is a line if the verdict needs one, and that it is one line.
fn check_line(verdict: ApprovalVerdict, line: Option<&str>) -> Result<(), ApiError> {
    let refused = |message: String| Err(ApiError::bad_field("line", message));
    match (verdict, line) {
        (ApprovalVerdict::Edit, None) => refused(
            "is missing: `edit` needs the line that takes the place of the other".to_owned(),
        ),
        (ApprovalVerdict::Edit, Some(line)) => check_new_line(line),
        (_, None) => Ok(()),
        (other, Some(_)) => {
            refused(format!("goes with `edit` only, and the verdict is `{}`", other.name()))
        }
    }
}
