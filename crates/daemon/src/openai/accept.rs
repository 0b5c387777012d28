//! Accepts the runs of a request, one per choice.

use std::sync::Arc;

use actix_web::HttpRequest;

use super::answer_form::AnswerForm;
use super::cancel_on_drop::{CancelOnDrop, is_kept};
use super::delivery::Delivery;
use super::request::ChatRequest;
use super::run_requests::RunRequests;
use crate::error::ApiError;
use crate::request_context::owner_of;
use crate::state::State;
use crate::submit::{key_of, resolve_if_room};
use prime_agent_set::task_program::TaskPrograms;
use prime_journal::IdempotencyKey;
use prime_service::app::App;
use prime_service::requests::{ResolvedRun, resolve};
use prime_service::runs::{NewRun, RunError, RunRecord, Runs};

/// An accepted run, and what its client wants of it.
pub struct AcceptedRun {
    pub run: CancelOnDrop,
    pub expected: Expected,
}

/// What a client wants of a run.
#[derive(Clone)]
pub struct Expected {
    form: Arc<AnswerForm>,
}

impl Expected {
    pub fn delivery(&self, record: &RunRecord) -> Delivery {
        Delivery::new(record, &self.form)
    }
}

/// The runs of a chat completion, and the form of their answers.
fn runs_of(
    app: &App,
    tasks: &TaskPrograms,
    chat: &ChatRequest,
) -> Result<(Vec<ResolvedRun>, Arc<AnswerForm>), ApiError> {
    let requests = RunRequests::of(app.settings(), chat)?;
    let resolved = requests.runs.iter().map(|request| resolve(app, tasks, request, None));
    let resolved =
        resolved.collect::<Result<_, _>>().map_err(|error| requests.locate(error.into()))?;
    Ok((resolved, requests.form))
}

/// The key of one choice of a request. No header can have a line break, so no client has chosen the
/// same.
fn key_of_choice(key: &IdempotencyKey, index: usize) -> IdempotencyKey {
    let text = if index == 0 { key.key.clone() } else { format!("{}\n{index}", key.key) };
    IdempotencyKey { key: text, fingerprint: key.fingerprint }
}

/// Accepts all runs, or cancels those already accepted; with a key they continue, for the request
/// that comes again.
async fn accept_all(
    runs: Arc<Runs>,
    owner: String,
    key: Option<IdempotencyKey>,
    (resolved, form): (Vec<ResolvedRun>, Arc<AnswerForm>),
    is_kept: bool,
) -> Result<Vec<AcceptedRun>, RunError> {
    let mut accepted: Vec<AcceptedRun> = Vec::with_capacity(resolved.len());
    for (index, run) in resolved.into_iter().enumerate() {
        let ResolvedRun { spec, problem } = run;
        let expected = Expected { form: Arc::clone(&form) };
        let own_key = key.as_ref().map(|key| key_of_choice(key, index));
        match runs.accept(NewRun { owner: owner.clone(), key: own_key, spec, problem }).await {
            Ok(run) => accepted
                .push(AcceptedRun { run: CancelOnDrop::new(&runs, run.record, is_kept), expected }),
            Err(error) => {
                // Only without a key: with one, the client repeats the request and gets these runs
                // again.
                if key.is_none() {
                    accepted.iter_mut().for_each(|accepted| accepted.run.force());
                }
                return Err(error);
            }
        }
    }

    Ok(accepted)
}

/// The runs of a request, whose body `chat` was read from. A repeated `Idempotency-Key` gets the
/// runs of the first request.
///
/// # Errors
/// The first invalid field, or why no run is accepted now.
pub async fn accept(
    state: &State,
    request: &HttpRequest,
    body: &[u8],
    chat: ChatRequest,
) -> Result<Vec<AcceptedRun>, ApiError> {
    let key = key_of(request.headers(), body)?;
    // A client that sends a key may come back, here or at another node.
    let is_kept = is_kept(request)?.unwrap_or(key.is_some());

    let runs = Arc::clone(&state.runs);
    let owner = owner_of(request);

    let resolved =
        resolve_if_room(state, &owner, key.as_ref(), move |app, tasks| runs_of(app, tasks, &chat))
            .await?;
    // On the heap: the future of an acceptance holds a run's whole spec.
    let accepting = Box::pin(accept_all(Arc::clone(&runs), owner, key, resolved, is_kept));
    Ok(runs.run_detached(accepting).await?)
}

/// The part of a response's id that is unique: that of the first run.
pub fn unique_of(accepted: &[AcceptedRun]) -> &str {
    accepted
        .first()
        .map(|accepted| accepted.run.id().trim_start_matches("run_"))
        .unwrap_or_default()
}
