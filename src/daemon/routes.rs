//! The routes: each checks its input, asks the app, and answers.

use std::sync::Arc;

use actix_web::error::PayloadError;
use actix_web::{HttpResponse, web};
use serde_json::json;

use super::State;
use super::wire::{Progress, RunRecord, RunRequest, Status, WireError};
use crate::app::{run_plan, run_sampling};
use crate::engine::Engine;
use crate::protocol::Outcome;
use crate::report::{RunResult, Solved};
use crate::runtime::{RunHandle, Silent};
use crate::settings::{Settings, SettingsError};
use crate::tasks::instance::read_problem;
use crate::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};

pub fn configure(config: &mut web::ServiceConfig) {
    let method = || async { Err::<HttpResponse, _>(WireError::NoSuchMethod) };
    config
        .service(web::resource("/v1/runs").route(web::post().to(submit)).default_service(web::to(method)))
        .service(web::resource("/v1/runs/{id}").route(web::get().to(show)).default_service(web::to(method)))
        .service(web::resource("/livez").route(web::get().to(livez)).default_service(web::to(method)))
        .service(web::resource("/readyz").route(web::get().to(readyz)).default_service(web::to(method)))
        .default_service(web::to(|| async { Err::<HttpResponse, _>(WireError::NoSuchRoute) }));
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "alive" }))
}

/// Ready means that a run handed in now would go on: the engine stands, and there is room.
async fn readyz(state: web::Data<State>) -> HttpResponse {
    let (live, limit) = (state.app.runtime().load(), state.app.settings().server.queue_max);
    let engine = state.app.engine().map(Engine::status);
    let engine_ready = engine.as_ref().is_none_or(|status| status.ready);
    let has_room = live < limit as usize;
    let body = json!({
        "ready": engine_ready && has_room,
        "live_runs": live,
        "live_runs_max": limit,
        "engine": engine.map(|status| json!({
            "name": status.name,
            "ready": status.ready,
            "restarts": status.restarts,
            "in_flight": status.in_flight,
            "last_decode_ms_ago": status.last_decode_ms_ago,
            "failure": status.failure.map(|failure| failure.to_string()),
        })),
    });
    if engine_ready && has_room { HttpResponse::Ok().json(body) } else { HttpResponse::ServiceUnavailable().json(body) }
}

/// The settings with a request's wishes, checked by the same ranges.
fn wished(settings: &Settings, request: &RunRequest) -> Result<Settings, WireError> {
    let mut settings = settings.clone();
    let run = &mut settings.run;
    let limits = run.budget.clone();
    run.fanout = request.fanout.unwrap_or(run.fanout);
    run.max_rounds = request.max_rounds.unwrap_or(run.max_rounds);
    run.seed = request.seed.unwrap_or(run.seed);
    run.temperature = request.temperature.unwrap_or(run.temperature);
    run.top_p = request.top_p.unwrap_or(run.top_p);
    let budget = &request.budget;
    for (field, wish, limit, value) in [
        ("budget.steps", budget.steps, limits.steps, &mut run.budget.steps),
        ("budget.tokens", budget.tokens, limits.tokens, &mut run.budget.tokens),
        ("budget.wall_ms", budget.wall_ms, limits.wall_ms, &mut run.budget.wall_ms),
    ] {
        let Some(wish) = wish else { continue };
        // A limit of 0 in the configuration means that there is none.
        if wish == 0 || (limit > 0 && wish > limit) {
            return Err(WireError::bad(field, format!("is {wish}; give 1 to {limit}, the daemon's own limit")));
        }
        *value = wish;
    }
    settings.validate().map_err(|error| refused(&error))?;
    Ok(settings)
}

/// A setting that is not allowed, as the field of the request that it came from.
fn refused(error: &SettingsError) -> WireError {
    match error {
        SettingsError::OutOfRange { key, found, expected, .. }
        | SettingsError::WrongType { key, found, expected, .. } => {
            let field = key.strip_prefix("run.").unwrap_or(key);
            WireError::bad(field, format!("is {found}, but must be {expected}"))
        }
        error => WireError::BadRequest { field: None, message: error.to_string() },
    }
}

fn problem_of(request: &RunRequest) -> Result<(String, Arc<dyn Problem>), WireError> {
    let task = tasks::find(&request.task).map_err(|error| WireError::bad("task", error))?;
    if let Some(input) = &request.input {
        if request.difficulty.is_some() || request.index.is_some() || request.base_seed.is_some() {
            return Err(WireError::bad("input", "give either an input, or difficulty, index and base_seed"));
        }
        let problem = read_problem(task, input).map_err(|error| WireError::bad("input", error))?;
        return Ok(("input".to_owned(), problem));
    }
    let difficulty = request.difficulty.unwrap_or(Difficulty::Easy);
    let base_seed = request.base_seed.unwrap_or(BASE_SEED);
    let id = InstanceId::new(task, difficulty, request.index.unwrap_or(0), base_seed)
        .map_err(|error| WireError::bad("index", error))?;
    Ok((id.to_string(), id.problem()))
}

fn read_request(body: &[u8]) -> Result<RunRequest, WireError> {
    let not_json = |error: &serde_json::Error| WireError::BadRequest {
        field: None,
        message: format!("the body is not a JSON object: {error}"),
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let request = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner();
        // What is not JSON has no fields; a missing field is one of the object's, which has no name.
        if !error.is_data() || body.trim_ascii_start().first() != Some(&b'{') {
            not_json(&error)
        } else if field == "." {
            WireError::BadRequest { field: None, message: format!("body: {error}") }
        } else {
            WireError::bad(&field, error)
        }
    })?;
    json.end().map_err(|error| not_json(&error))?;
    Ok(request)
}

async fn submit(
    state: web::Data<State>,
    body: Result<web::Bytes, actix_web::Error>,
) -> Result<HttpResponse, WireError> {
    let server = &state.app.settings().server;
    let body = body.map_err(|error| match error.as_error::<PayloadError>() {
        Some(PayloadError::Overflow) => WireError::TooLarge { limit: server.body_bytes_max },
        _ => WireError::BadRequest { field: None, message: format!("the body cannot be read: {error}") },
    })?;
    let request = read_request(&body)?;
    let settings = wished(state.app.settings(), &request)?;
    let (live, limit) = (state.app.runtime().load(), server.queue_max);
    if live >= limit as usize {
        return Err(WireError::Full { live, limit });
    }
    // Drawing an instance may take milliseconds; other requests of this worker do not wait for it.
    let drawn = web::block(move || problem_of(&request)).await;
    let (instance, problem) =
        drawn.map_err(|_| WireError::BadRequest { field: None, message: "the daemon is stopping".to_owned() })??;
    let plan = run_plan(&settings, state.app.runtime().agents().kinds());
    let sampling = run_sampling(&settings);
    let handle = state.app.submit(Arc::clone(&problem), plan, sampling, Arc::new(Silent));
    let spec = problem.spec();
    let record = RunRecord {
        id: state.registry.id_of(handle.id),
        status: Status::Running,
        progress: Progress::Open { task: spec.slug, instance: instance.clone(), config_hash: settings.hash() },
    };
    state.registry.insert(record.clone());
    actix_web::rt::spawn(follow(
        state.clone(),
        handle,
        record.clone(),
        Followed { spec, instance, seed: sampling.seed, config_hash: settings.hash() },
    ));
    Ok(HttpResponse::Accepted().insert_header(("Location", format!("/v1/runs/{}", record.id))).json(record))
}

/// What a result says beside its outcome.
struct Followed {
    spec: &'static tasks::Spec,
    instance: String,
    seed: u64,
    config_hash: String,
}

/// Waits for a run's end and records it.
async fn follow(state: web::Data<State>, mut handle: RunHandle, record: RunRecord, followed: Followed) {
    let started = tokio::time::Instant::now();
    let Some(outcome) = handle.outcome().await else {
        return state.registry.finish(RunRecord { status: Status::Failed, ..record });
    };
    let status = status_of(&outcome);
    let solved = Solved {
        task: followed.spec.slug,
        instance: followed.instance,
        agents: state.app.runtime().agents(),
        config_hash: &followed.config_hash,
        seed: followed.seed,
        wall_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        correct: None,
    };
    let progress = Progress::Done(Box::new(RunResult::new(outcome, solved)));
    state.registry.finish(RunRecord { status, progress, ..record });
}

fn status_of(outcome: &Outcome) -> Status {
    use crate::protocol::Ending;
    match &outcome.ending {
        Ending::AgentFailed(_) => Status::Failed,
        Ending::Cancelled => Status::Cancelled,
        _ if outcome.verified => Status::Verified,
        _ => Status::Unverified,
    }
}

async fn show(state: web::Data<State>, id: web::Path<String>) -> Result<HttpResponse, WireError> {
    let id = id.into_inner();
    let record = state.registry.get(&id).ok_or(WireError::NoSuchRun(id))?;
    Ok(HttpResponse::Ok().json(record))
}
