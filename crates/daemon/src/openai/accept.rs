//! Accepts the runs of a request, one per choice.

use std::sync::Arc;

use actix_web::{HttpRequest, web};

use super::answer_form::AnswerForm;
use super::cancel_on_drop::{CancelOnDrop, is_kept};
use super::delivery::Delivery;
use super::request::ChatRequest;
use super::run_requests::RunRequests;
use crate::State;
use crate::error::ApiError;
use crate::resolve::spec_of;
use crate::runs::{key_of, owner_of};
use prime_bench::tasks::Problem;
use prime_journal::IdempotencyKey;
use prime_service::runs::{NewRun, RunError, RunRecord, RunSpec, Runs};

type Checked = (RunSpec, Arc<dyn Problem>);

/// An accepted run, and what its client wants of it.
pub struct AcceptedRun {
    pub run: CancelOnDrop,
    pub expected: Expected,
}

/// What a client wants of a run.
#[derive(Clone)]
pub struct Expected {
    form: Arc<AnswerForm>,
    /// Whether an answer can be verified.
    is_checked: bool,
}

impl Expected {
    pub fn delivery(&self, record: &RunRecord) -> Delivery {
        Delivery::new(record, &self.form, self.is_checked)
    }
}

/// The checked runs, and the form of their answers.
fn specs_of(runs: &Runs, chat: &ChatRequest) -> Result<(Vec<Checked>, Arc<AnswerForm>), ApiError> {
    let app = runs.app();
    let requests = RunRequests::of(app.settings(), chat)?;
    let specs = requests.runs.iter().map(|request| spec_of(&app, request, None));
    let specs = specs.collect::<Result<_, _>>().map_err(|error| requests.locate(error))?;
    Ok((specs, requests.form))
}

/// The key of one choice of a request. No header can have a line break, so no client has chosen the
/// same.
fn key_of_choice(key: &IdempotencyKey, index: usize) -> IdempotencyKey {
    let text = if index == 0 { key.key.clone() } else { format!("{}\n{index}", key.key) };
    IdempotencyKey { key: text, fingerprint: key.fingerprint }
}

/// Accepts all runs, or cancels those already accepted; with a key they go on, for the request that
/// comes again.
async fn accept_all(
    runs: Arc<Runs>,
    owner: String,
    key: Option<IdempotencyKey>,
    (specs, form): (Vec<Checked>, Arc<AnswerForm>),
    is_kept: bool,
) -> Result<Vec<AcceptedRun>, RunError> {
    let mut accepted: Vec<AcceptedRun> = Vec::with_capacity(specs.len());
    for (index, (spec, problem)) in specs.into_iter().enumerate() {
        let expected = Expected { form: Arc::clone(&form), is_checked: spec.plan.is_checked };
        let own_key = key.as_ref().map(|key| key_of_choice(key, index));
        match runs.accept(NewRun { owner: owner.clone(), key: own_key, spec, problem }).await {
            Ok(run) => accepted
                .push(AcceptedRun { run: CancelOnDrop::new(&runs, run.record, is_kept), expected }),
            Err(error) => {
                if key.is_none() {
                    accepted.iter_mut().for_each(|accepted| accepted.run.force());
                }
                return Err(error);
            }
        }
    }
    Ok(accepted)
}

/// The runs of a request, whose body `chat` was read from. Those of a repeated `Idempotency-Key`
/// are the ones of the first request.
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
    // Whoever sends a key may come back, here or at another node.
    let is_kept = is_kept(request)?.unwrap_or(key.is_some());
    let runs = Arc::clone(&state.runs);
    let owner = owner_of(request);
    // A key may belong to runs that are open already.
    if key.is_none() {
        runs.has_room(&owner)?;
    }
    // Generating an instance may take milliseconds, for which other requests of this worker must
    // not wait.
    let specs = {
        let runs = Arc::clone(&runs);
        let system = actix::System::current();
        web::block(move || {
            actix::System::set_current(system);
            specs_of(&runs, &chat)
        })
        .await
        .map_err(|_| ApiError::from(RunError::Draining))??
    };
    Ok(runs.run_detached(accept_all(Arc::clone(&runs), owner, key, specs, is_kept)).await?)
}

/// The part of a response's id that is unique: that of the first run.
pub fn unique_of(accepted: &[AcceptedRun]) -> &str {
    accepted
        .first()
        .map(|accepted| accepted.run.id().trim_start_matches("run_"))
        .unwrap_or_default()
}
