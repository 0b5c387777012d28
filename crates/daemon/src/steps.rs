//! Routes that show what a run did, step by step, without a reader having to fetch all of its
//! events.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::parameters::{page_limit, parse_query, step_number};
use super::request_context::authorized_run;
use super::state::State;
use prime_protocol::TurnId;
use prime_service::runs::{
    FoundStep, RunComparison, RunTree, StepDetail, StepList, TrajectoryShape, Wanted,
};

/// Columns of a shape: most, and default.
const CELLS_MAX: u32 = 4_096;
const CELLS: u32 = 512;

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route| {
        web::resource(path).route(route).default_service(web::to(|| method_not_allowed("GET")))
    };
    config
        .service(resource("/v1/runs/{id}/tree", web::get().to(tree)))
        .service(resource("/v1/runs/{id}/shape", web::get().to(shape)))
        .service(resource("/v1/runs/{id}/steps", web::get().to(list)))
        .service(resource("/v1/runs/{id}/steps/{seq}", web::get().to(show)))
        .service(resource("/v1/runs/{id}/find", web::get().to(find)))
        .service(resource("/v1/runs/{id}/spec", web::get().to(spec)))
        .service(resource("/v1/compare", web::get().to(compare)));
}

/// Which part of a trajectory to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShapeQuery {
    /// Round and trajectory, as `1.0`.
    #[param(pattern = "^[0-9]{1,9}[.][0-9]{1,9}$")]
    trajectory: String,
    /// Most columns, 1 to 4,096; 512 by default.
    #[param(minimum = 1, maximum = 4_096)]
    cells: Option<u32>,
    /// The position of the first step; 0 by default.
    from: Option<u64>,
    /// The position after the last step; the trajectory's end by default.
    to: Option<u64>,
}

/// Which steps to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StepsQuery {
    /// Only those of this trajectory: round and trajectory, as `1.0`.
    #[param(pattern = "^[0-9]{1,9}[.][0-9]{1,9}$")]
    trajectory: Option<String>,
    /// With `trajectory`: the position of the first step; 0 by default.
    from: Option<u64>,
    /// Without `trajectory`: only steps after this event; 0 by default.
    after: Option<u64>,
    /// Steps per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
}

/// What to look for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FindQuery {
    /// Round and trajectory, as `1.0`.
    #[param(pattern = "^[0-9]{1,9}[.][0-9]{1,9}$")]
    trajectory: String,
    /// `rejected`, `retry`, `backtrack`, `pop`, `flag`, or `violation:` and the name of a
    /// constraint.
    #[param(pattern = "^(rejected|retry|backtrack|pop|flag|violation:.+)$")]
    what: String,
    /// Only steps after this position; from the trajectory's start by default.
    after: Option<u64>,
    /// Instead of `after`: the last step before this position.
    before: Option<u64>,
}

/// The runs to compare.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CompareQuery {
    /// The first run's `id`.
    a: String,
    /// The second run's `id`.
    b: String,
}

/// Reads `ROUND.TRAJECTORY`.
fn turn_of(text: &str) -> Result<TurnId, ApiError> {
    // `parse` alone would accept a sign.
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };

    let read = text.split_once('.').and_then(|(round, trajectory)| {
        Some(TurnId { round: number(round)?, trajectory: number(trajectory)? })
    });

    read.ok_or_else(|| {
        ApiError::bad_field("trajectory", "must be a round and a trajectory, as `1.0`")
    })
}

/// Shows a run as rounds of trajectories.
///
/// Counts of each trajectory, how it ended, and its course in small columns. Computed from an index
/// that grows with the run's durable events: for a long run, the first answer may count only some
/// of them, and says so in `has_more`.
#[utoipa::path(
    get, path = "/v1/runs/{id}/tree", tag = "runs", operation_id = "show_tree", params(("id", description = "The run's `id`")),
    responses((status = 200, description = "Rounds and trajectories", body = RunTree)),
)]
pub async fn tree(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    authorized_run(&state, &request, &id).await?;
    Ok(HttpResponse::Ok().json(state.runs.steps().tree(&id).await?))
}

/// Shows the course of a trajectory in columns.
///
/// Each column has the counts and extremes of equally many steps, so a single rejected step among a
/// million shows in one of them.
#[utoipa::path(
    get, path = "/v1/runs/{id}/shape", tag = "runs", operation_id = "show_shape",
    params(("id", description = "The run's `id`"), ShapeQuery),
    responses((status = 200, description = "The columns", body = TrajectoryShape)),
)]
pub async fn shape(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ShapeQuery { trajectory, cells, from, to } = parse_query(&request)?;
    let turn = turn_of(&trajectory)?;
    let cells = cells.unwrap_or(CELLS);
    if !(1..=CELLS_MAX).contains(&cells) {
        return Err(ApiError::bad_field("cells", format!("is {cells}; give 1 to {CELLS_MAX}")));
    }

    authorized_run(&state, &request, &id).await?;
    let range = (from.unwrap_or(0), to.unwrap_or(u64::MAX));
    Ok(HttpResponse::Ok().json(state.runs.steps().shape(&id, turn, range, cells as usize).await?))
}

/// Lists steps of a run.
///
/// Either those of one trajectory, by position, or those of all, by event. Texts are cut at 4 KiB.
#[utoipa::path(
    get, path = "/v1/runs/{id}/steps", tag = "runs", operation_id = "list_steps",
    params(("id", description = "The run's `id`"), StepsQuery),
    responses((status = 200, description = "A page of steps", body = StepList)),
)]
pub async fn list(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let StepsQuery { trajectory, from, after, limit } = parse_query(&request)?;
    let limit = page_limit(limit)? as usize;
    let turn = trajectory.as_deref().map(turn_of).transpose()?;

    match (turn, from, after) {
        (Some(_), _, Some(_)) => {
            return Err(ApiError::bad_field(
                "after",
                "is for lists without `trajectory`: give `from`",
            ));
        }
        (None, Some(_), _) => {
            return Err(ApiError::bad_field(
                "from",
                "needs `trajectory`: without it, give `after`",
            ));
        }
        _ => {}
    }

    authorized_run(&state, &request, &id).await?;
    let steps = match turn {
        Some(turn) => state.runs.steps().of_trajectory(&id, turn, from.unwrap_or(0), limit).await?,
        None => state.runs.steps().after(&id, after.unwrap_or(0), limit).await?,
    };
    Ok(HttpResponse::Ok().json(steps))
}

/// Shows a step in full.
///
/// The recorded event, what was decided and why in words, the violated constraints with their
/// meaning, the states before and after, and the steps below it.
#[utoipa::path(
    get, path = "/v1/runs/{id}/steps/{seq}", tag = "runs", operation_id = "show_step",
    params(("id", description = "The run's `id`"), ("seq" = u64, description = "The number of the step's event")),
    responses(
        (status = 200, description = "The step", body = StepDetail),
        (status = 409, description = "The program of its task fails, so that no state is known", body = ErrorBody),
    ),
)]
pub async fn show(
    state: web::Data<State>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (id, seq) = path.into_inner();
    authorized_run(&state, &request, &id).await?;
    Ok(HttpResponse::Ok().json(state.runs.steps().detail(&id, step_number(&seq)?).await?))
}

/// Finds the next step of a kind.
#[utoipa::path(
    get, path = "/v1/runs/{id}/find", tag = "runs", operation_id = "find_step",
    params(("id", description = "The run's `id`"), FindQuery),
    responses((status = 200, description = "The step, or nulls if there is none", body = FoundStep)),
)]
pub async fn find(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let FindQuery { trajectory, what, after, before } = parse_query(&request)?;
    let turn = turn_of(&trajectory)?;
    let wanted = Wanted::read(&what).ok_or_else(|| {
        ApiError::bad_field(
            "what",
            "must be `rejected`, `retry`, `backtrack`, `pop`, `flag` or `violation:NAME`",
        )
    })?;
    if after.is_some() && before.is_some() {
        return Err(ApiError::bad_field("before", "excludes `after`: give one of them"));
    }

    authorized_run(&state, &request, &id).await?;
    let found =
        state.runs.steps().find(&id, turn, wanted, after.or(before), before.is_some()).await?;
    Ok(HttpResponse::Ok().json(found))
}

/// Shows everything that a run was accepted with.
///
/// This is the input, plan, sampling and agents with their options, as at the beginning of its
/// trace.
#[utoipa::path(
    get, path = "/v1/runs/{id}/spec", tag = "runs", operation_id = "show_spec", params(("id", description = "The run's `id`")),
    responses((status = 200, description = "The spec", body = Object)),
)]
pub async fn spec(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    authorized_run(&state, &request, &id).await?;
    Ok(HttpResponse::Ok().json(state.runs.store().spec(&id).await?))
}

/// Compares two runs step by step.
///
/// For each trajectory that both have: how many leading steps have the same action, violations and
/// decision, and the first step that differs. For long runs, the first answer may compare only some
/// events, and says so in `has_more`.
#[utoipa::path(
    get, path = "/v1/compare", tag = "runs", operation_id = "compare_steps", params(CompareQuery),
    responses(
        (status = 200, description = "Where they part", body = RunComparison),
        (status = 404, description = "One of the runs does not exist, or belongs to another key", body = ErrorBody),
    ),
)]
pub async fn compare(
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let CompareQuery { a, b } = parse_query(&request)?;
    authorized_run(&state, &request, &a).await?;
    authorized_run(&state, &request, &b).await?;
    Ok(HttpResponse::Ok().json(state.runs.steps().compare(&a, &b).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trajectory_is_named_by_round_and_number() {
        assert_eq!(turn_of("2.13").unwrap(), TurnId { round: 2, trajectory: 13 });
        for text in ["", "1", "1.", ".0", "1.0.0", "+1.0", "-1.0", "1.4294967296", "a.b"] {
            assert!(turn_of(text).is_err(), "{text}");
        }
    }
}
