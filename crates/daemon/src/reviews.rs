//! Routes of human review: reviews, who is to give them, and the pairs that they make.

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, Owner, json};
use super::parameters::{page_limit, parse_query};
use super::request_context::{
    MYSELF, NOBODY, asking, assigned, authorized_run, listed_owner, reviewer, run_owner,
};
use super::run_list::ListQuery;
use super::state::State;
use super::wire::{AssignRequest, PairsQuery, ReviewList, ReviewRequest, ReviewsQuery};
use prime_service::runs::{FlaggedStep, PairLine, RunError};

/// Longest note, in bytes.
const NOTE_BYTES_MAX: usize = 4_000;
/// Runs that an export reads about at a time.
const RUNS_AT_ONCE: u32 = 100;
/// Longest name of an assignee, in characters.
const ASSIGNEE_CHARS_MAX: usize = 64;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/reviews")
            .route(web::get().to(list))
            .route(web::post().to(review))
            .route(web::patch().to(assign))
            .default_service(web::to(|| method_not_allowed("GET, PATCH, POST"))),
    );
    config.service(
        web::resource("/v1/reviews/pairs")
            .route(web::get().to(pairs))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// Lists the steps of a run that need review.
///
/// These are the steps on which the verifiers of an ensemble disagree by more than its `delta`,
/// with their reviews.
#[utoipa::path(
    get, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "list_reviews",
    params(("id", description = "The run's `id`"), ReviewsQuery),
    responses((status = 200, description = "A page of steps", body = ReviewList)),
)]
pub async fn list(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ReviewsQuery { after, limit, assignee } = parse_query(&request)?;
    let limit = page_limit(limit)?;
    authorized_run(&state, &request, &id).await?;
    let assigned = assignee.map(|name| assigned(name, &asking(&request)));
    let (steps, next) =
        state.runs.store().reviews(&id, after.unwrap_or(0), limit, assigned).await?;
    Ok(HttpResponse::Ok().json(ReviewList { steps, next }))
}

/// Reviews a step.
///
/// A review does not change its run, which may be over: `verified` is the verifier's verdict. The
/// newest review counts, and earlier ones are kept; a repetition of the newest changes nothing.
#[utoipa::path(
    post, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "review_step",
    params(("id", description = "The run's `id`")),
    request_body(content = ReviewRequest, example = json!({"seq": 17, "verdict": "reject", "note": "7 is not a prime"})),
    responses(
        (status = 200, description = "The step; the review is durable", body = FlaggedStep),
        (status = 409, description = "The step has too many reviews", body = ErrorBody),
        (status = 422, description = "The event is not a step that needs review", body = ErrorBody),
    ),
)]
pub async fn review(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let ReviewRequest { seq, verdict, note } = json(&body.0)?;
    if note.len() > NOTE_BYTES_MAX {
        let message = format!("has {} bytes; give at most {NOTE_BYTES_MAX}", note.len());
        return Err(ApiError::bad_field("note", message));
    }

    authorized_run(&state, &request, &id).await?;
    let by = reviewer(&asking(&request));
    let step = state.runs.store().review(&id, seq, verdict, note, by).await?;
    Ok(HttpResponse::Ok().json(step))
}

/// True for a character that cannot be seen, or that changes the direction of a text: with it, two
/// names look alike.
fn is_hidden(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{feff}');
    is_format || c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

/// The assignee that a request names; `None` for nobody.
fn assignee(
    state: &State,
    asking: &Owner,
    run_owner: &str,
    named: Option<String>,
) -> Result<Option<String>, ApiError> {
    let Some(name) = named else { return Ok(None) };
    if name == MYSELF {
        return Ok(Some(reviewer(asking)));
    }

    let refused = |message: String| Err(ApiError::bad_field("assignee", message));
    if name == NOBODY {
        return refused(format!("{NOBODY:?} stands for nobody in lists: give null"));
    }
    if !state.has_keys {
        let count = name.chars().count();
        return if name.trim() != name || name.is_empty() || name.chars().any(is_hidden) {
            refused(
                "give a name without control or invisible characters and without blanks at its \
                 ends, or null for nobody"
                    .to_owned(),
            )
        } else if count > ASSIGNEE_CHARS_MAX {
            refused(format!("has {count} characters; give at most {ASSIGNEE_CHARS_MAX}"))
        } else {
            Ok(Some(name))
        };
    }

    // A key that cannot see the run cannot review it.
    let may_see = name == run_owner || state.keys.get(&name).is_some_and(|is_admin| *is_admin);
    if may_see && state.keys.contains_key(&name) {
        return Ok(Some(name));
    }
    refused(format!(
        "{name:?} is no key that may see this run: give the name of the run's own key or of an \
         admin's, `me`, or null for nobody"
    ))
}

/// Assigns a step that needs review.
///
/// The last assignment stands. It keeps nobody else from reviewing the step, and a review does not
/// change it.
#[utoipa::path(
    patch, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "assign_review",
    params(("id", description = "The run's `id`")),
    request_body(content = AssignRequest, example = json!({"seq": 17, "assignee": "me"})),
    responses(
        (status = 200, description = "The step; the assignment is durable", body = FlaggedStep),
        (status = 422, description = "The event is not a step that needs review", body = ErrorBody),
    ),
)]
pub async fn assign(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let AssignRequest { seq, assignee: named } = json(&body.0)?;
    let asking = asking(&request);
    let owner = run_owner(&state, &asking, &id).await?;
    let assignee = assignee(&state, &asking, &owner, named)?;
    let step = state.runs.store().assign(&id, seq, assignee).await?;
    Ok(HttpResponse::Ok().json(step))
}

/// Exports reviews as preference pairs.
///
/// JSON Lines with the columns `prompt`, `chosen` and `rejected` of `data dpo`, which trainers for
/// preference optimisation read. Each step whose newest review rejects it becomes a pair with the
/// best other line of the same state in its run: one that a reviewer accepted, that a person put in
/// the place of a line that waited for approval, or that was committed without a fault. Steps
/// without such a line are left out. What was reviewed in the last moments may be missing.
#[utoipa::path(
    get, path = "/v1/reviews/pairs", tag = "runs", operation_id = "export_review_pairs",
    params(PairsQuery),
    responses(
        (status = 200, description = "JSON Lines, each a `PreferencePair`, or with `left_out=true` a `LeftOutStep`",
            content_type = "application/jsonl", body = String),
        (status = 403, description = "Only an admin's key lists the runs of others", body = ErrorBody),
        (status = 404, description = "The run does not exist, or belongs to another key", body = ErrorBody),
    ),
)]
pub async fn pairs(
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let query: PairsQuery = parse_query(&request)?;
    let with_left_out = query.left_out.unwrap_or(false);
    let reader = state.runs.reader();

    let lines = if let Some(id) = &query.run {
        let PairsQuery { task, agent, model, label, key, since, before, .. } = &query;
        if [task, agent, model, label, key, since, before].into_iter().any(Option::is_some) {
            return Err(ApiError::bad_field("run", "goes with left_out alone"));
        }
        let record = authorized_run(&state, &request, id).await?;
        stream::iter(reader.pairs_of(&record).await?).map(Ok).left_stream()
    } else {
        let PairsQuery { task, agent, model, label, key, since, before, .. } = query;
        let owner = listed_owner(&asking(&request), key.as_deref())?;
        let limit = Some(RUNS_AT_ONCE);
        let wanted =
            ListQuery { task, agent, model, label, since, before, limit, ..ListQuery::default() };
        reader.pairs(wanted.search(owner)?).right_stream()
    };
    Ok(HttpResponse::Ok()
        .content_type("application/jsonl")
        .streaming(written(lines, with_left_out)))
}

/// Lines of JSON. Steps that are left out are written if that is asked for.
fn written(
    lines: impl Stream<Item = Result<PairLine, RunError>>,
    with_left_out: bool,
) -> impl Stream<Item = Result<Bytes, RunError>> {
    lines.try_filter_map(move |line| async move {
        let is_written = with_left_out || matches!(line, PairLine::Pair(_));
        Ok(is_written.then(|| {
            let text = serde_json::to_string(&line).expect("invariant: pairs serialise");
            Bytes::from(text + "\n")
        }))
    })
}
