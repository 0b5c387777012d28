//! Systems whose runs daemons carry out. A run that a daemon cannot take goes to the next one;
//! while none can, it waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prime_protocol::{Assurance, Ballot, Cost, Ending, Usage};
use prime_study::definition::{AskedRun, Study};
use prime_study::records::Record;
use prime_study::results::{STUDY_LABEL, study_label};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::{judged, never_completed};
use crate::evaluation::run_trace::{RunTrace, TraceEvent};
use prime_bench::tasks::Problem;
use prime_http_client::root_cause;

/// How long a daemon that has accepted a run may be unreachable before another one gets the run.
const ABSENCE_MAX: Duration = Duration::from_secs(20);
/// The first and the longest pause between polls of a run.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// The longest pause before all daemons are tried again.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Rounds over all daemons in which a run is submitted.
const ATTEMPTS_MAX: u32 = 1_000;
/// Characters of an error message that are kept.
const MESSAGE_MAX: usize = 400;

/// Daemons that share the runs.
pub struct Daemons {
    http: Client,
    urls: Vec<String>,
    authorization: Option<HeaderValue>,
    /// How long runs wait while no daemon answers, before they count as not measured.
    patience: Duration,
    /// When a daemon last answered with success. Once all have been silent for longer than
    /// `patience`, each remaining run tries them only once.
    answered: Mutex<Instant>,
    /// The daemon that gets the next run.
    next: AtomicUsize,
}

/// A system that daemons know by the fields of a request.
pub struct DaemonSystem {
    /// The daemons, which take runs in turn.
    pub daemons: Arc<Daemons>,
    /// Fields of every request.
    pub fields: Map<String, Value>,
}

/// Why a daemon did not carry out a run.
enum NotDone {
    /// It does not answer, or cannot take the run now.
    Later(String),
    /// It no longer knows the run: it lost its journal.
    Lost(String),
    /// It never will.
    Refused(String),
}

/// The daemon's record of a run, as far as it is used.
#[derive(Deserialize)]
struct DaemonRecord {
    id: String,
    status: String,
    #[serde(default)]
    engines: BTreeMap<String, Option<String>>,
    answer: Option<Value>,
    assurance: Option<Assurance>,
    verifier: String,
    checked_kinds: Vec<String>,
    outcome: Option<String>,
    failure: Option<String>,
    steps: u64,
    proposals: u64,
    retries: u64,
    backtracks: u64,
    pops: u64,
    rounds: u32,
    trajectories: u32,
    votes: Vec<Ballot>,
    agreement: f64,
    tokens: Usage,
    wall_ms: u64,
    config_hash: String,
}

impl DaemonRecord {
    fn is_over(&self) -> bool {
        !matches!(self.status.as_str(), "queued" | "running" | "waiting")
    }
}

impl Daemons {
    /// Daemons by their URLs, which have no trailing slash.
    pub fn new(
        http: Client,
        urls: Vec<String>,
        authorization: Option<HeaderValue>,
        patience: Duration,
    ) -> Self {
        Self {
            http,
            urls,
            authorization,
            patience,
            answered: Mutex::new(Instant::now()),
            next: AtomicUsize::new(0),
        }
    }

    fn answered(&self) -> MutexGuard<'_, Instant> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.authorization {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        }
    }

    /// The versions of the daemons, each once.
    ///
    /// # Errors
    /// If one does not answer as a daemon does.
    pub async fn versions(&self) -> Result<String, String> {
        let mut versions: Vec<String> = Vec::new();
        for url in &self.urls {
            let failed = |reason: String| {
                format!("--url {url}: {reason}; start a daemon there with `prime-agents serve`")
            };

            let sent = self.http.get(format!("{url}/openapi.json")).send().await;
            let response = sent.map_err(|error| failed(root_cause(&error)))?;
            let document: Value = json(response)
                .await
                .map_err(|_| failed("it answers, but not as a daemon".to_owned()))?;

            let Some(version) = document["info"]["version"].as_str() else {
                return Err(failed("it answers, but not as a daemon".to_owned()));
            };

            if !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
        Ok(versions.join(", "))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, NotDone> {
        let response = self
            .with_key(request)
            .send()
            .await
            .map_err(|error| NotDone::Later(root_cause(&error)))?;

        let status = response.status();
        if status.is_success() {
            *self.answered() = Instant::now();
            return Ok(response);
        }

        let may_pass = matches!(status.as_u16(), 408 | 429 | 502..=504)
            || response.headers().contains_key(RETRY_AFTER);

        let text = response.text().await.unwrap_or_default();
        let message = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|body| body["error"]["message"].as_str().map(str::to_owned));
        let message: String = message.unwrap_or(text).chars().take(MESSAGE_MAX).collect();

        let reason = format!("{message} (status {})", status.as_u16());
        Err(match status {
            _ if may_pass => NotDone::Later(reason),
            StatusCode::NOT_FOUND => NotDone::Lost(reason),
            _ => NotDone::Refused(reason),
        })
    }

    /// Has one daemon carry out a run.
    async fn carry_out(
        &self,
        url: &str,
        request: &Value,
        key: &str,
    ) -> Result<(DaemonRecord, RunTrace), NotDone> {
        let runs = format!("{url}/v1/runs");
        let post = self
            .http
            .post(&runs)
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", key);

        let mut record: DaemonRecord =
            json(self.send(post.body(request.to_string())).await?).await?;

        let run = format!("{runs}/{}", record.id);
        let mut pause = PAUSES.0;

        let (mut away, absence_max): (Option<Instant>, _) = (None, ABSENCE_MAX.min(self.patience));

        while !record.is_over() {
            sleep(pause).await;
            pause = (2 * pause).min(PAUSES.1);

            let asked = match self.send(self.http.get(&run)).await {
                Ok(response) => json(response).await,
                Err(error) => Err(error),
            };

            match asked {
                Ok(newer) => (record, away) = (newer, None),
                Err(NotDone::Later(reason))
                    if away.get_or_insert_with(Instant::now).elapsed() > absence_max =>
                {
                    return Err(NotDone::Later(reason));
                }
                Err(NotDone::Later(_)) => {}
                // It has lost its journal: submitting the run again starts it anew.
                Err(NotDone::Lost(reason)) => return Err(NotDone::Later(reason)),
                Err(refused) => return Err(refused),
            }
        }

        let response = self.send(self.http.get(format!("{run}/trace?states=false"))).await?;
        let text = response.text().await.map_err(|error| NotDone::Later(root_cause(&error)))?;

        let trace = RunTrace::default();
        for line in text.lines() {
            let event = serde_json::from_str::<TraceEvent>(line);
            // The first line is not an event: it describes the run.
            if let Ok(event) = event {
                trace.read_line(&event);
            }
        }

        Ok((record, trace))
    }
}

/// The body of a response.
async fn json<T: DeserializeOwned>(response: Response) -> Result<T, NotDone> {
    let status = response.status();
    let bytes = response.bytes().await.map_err(|error| NotDone::Later(root_cause(&error)))?;

    serde_json::from_slice(&bytes).map_err(|error| match status {
        StatusCode::OK | StatusCode::ACCEPTED | StatusCode::CREATED => {
            NotDone::Refused(format!("the answer cannot be read by this version: {error}"))
        }
        _ => NotDone::Later(error.to_string()),
    })
}

impl DaemonSystem {
    fn request(&self, run: &AskedRun, problem: &dyn Problem, study: &Study) -> Value {
        let mut request = self.fields.clone();

        request.insert("task".to_owned(), run.task.spec().slug.into());
        if run.task.given().is_some() {
            request.insert("input".to_owned(), problem.input());
        } else {
            request.insert("difficulty".to_owned(), run.difficulty.name().into());
            request.insert("index".to_owned(), run.index.into());
            request.insert("base_seed".to_owned(), run.base_seed.into());
        }
        // Seeds in requests have 63 bits.
        request.insert("seed".to_owned(), (run.sampling_seed(study) >> 1).into());
        let system = &study.systems[run.system].name;
        let label = study_label(&study.name, system);
        request.insert("labels".to_owned(), json!({ STUDY_LABEL: label }));
        Value::Object(request)
    }

    pub(super) async fn run(&self, run: &AskedRun, study: &Study, mut record: Record) -> Record {
        let problem = run.instance().problem();
        record.set_problem(problem.as_ref());
        if problem.has_reference() {
            record.reference_steps = problem.reference().steps;
        }

        let request = self.request(run, problem.as_ref(), study);
        // Sending a request again must not start a second run, but another session's must start
        // one.
        let text = format!("{}{request}{}", record.started_at, record.system);
        let key = format!("study-{:016x}", prime_bench::fnv1a(text.bytes()));

        // Each attempt begins with the same daemon, which knows the run by its key if it was
        // accepted there.
        let Daemons { urls, next, .. } = self.daemons.as_ref();
        let first = next.fetch_add(1, Ordering::Relaxed);

        let (mut pause, mut reason) = (PAUSES.1, String::new());
        // Limited: while other runs succeed, `patience` never ends for one that is put off each
        // time.
        for _ in 0..ATTEMPTS_MAX {
            for offset in 0..urls.len() {
                let url = &urls[(first + offset) % urls.len()];
                match self.daemons.carry_out(url, &request, &key).await {
                    Ok((daemon, trace)) => {
                        let problem = problem.as_ref();
                        return recorded(run, problem, study, daemon, &trace, url, record).await;
                    }
                    Err(NotDone::Refused(message) | NotDone::Lost(message)) => {
                        return Record { failure: Some(format!("{url}: {message}")), ..record };
                    }
                    Err(NotDone::Later(message)) => reason = format!("{url}: {message}"),
                }
            }

            if self.daemons.answered().elapsed() > self.daemons.patience {
                break;
            }

            sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
        Record { failure: Some(reason), ..record }
    }
}

/// Completes the record of a run that a daemon has ended.
async fn recorded(
    run: &AskedRun,
    problem: &dyn Problem,
    study: &Study,
    daemon: DaemonRecord,
    trace: &RunTrace,
    url: &str,
    mut record: Record,
) -> Record {
    record.verifier = daemon.verifier;
    record.checked_kinds = daemon.checked_kinds.join(",");
    record.config_hash = daemon.config_hash;
    record.machine = format!("daemon at {url}");

    let digests = daemon
        .engines
        .iter()
        .filter_map(|(engine, digest)| Some(format!("{engine} {}", digest.as_ref()?)));
    let digests: Vec<String> = digests.collect();
    record.model_digest = (!digests.is_empty()).then(|| digests.join(", "));

    record.wall_ms = daemon.wall_ms as f64;
    record.steps = daemon.steps;
    record.proposals = daemon.proposals;
    record.retries = daemon.retries;
    record.steps_retried = Some(trace.steps_retried());
    record.set_refusals(&trace.refusals());
    record.backtracks = daemon.backtracks;
    record.pops = daemon.pops;
    record.rounds = daemon.rounds;

    record.trajectories = daemon.trajectories;
    record.prompt_tokens = daemon.tokens.prompt;
    record.completion_tokens = daemon.tokens.completion;
    record.cached_tokens = Some(daemon.tokens.cached);
    record.cost = daemon.tokens.cost.map(Cost::units);

    let failed = daemon.outcome.as_deref() == Some(Ending::AgentFailed(String::new()).name());
    let ending = daemon.outcome.unwrap_or(daemon.status);
    record.failure = daemon.failure.or_else(|| daemon.answer.is_none().then(|| ending.clone()));

    let allowed = |kind: &String| study.kinds.iter().any(|allowed| allowed.name() == kind);
    // The study's figures would not be comparable, so the run is not judged.
    if let Some(kind) = daemon.checked_kinds.iter().find(|kind| !allowed(kind)) {
        record.failure =
            Some(format!("{url}: the verifier saw {kind}, which `study.kinds` does not allow"));
        return record;
    }
    if failed {
        return record;
    }
    if let Some(reason) = never_completed(&record, &ending, daemon.answer.is_some()) {
        record.failure = Some(format!("{url}: {reason}"));
        return record;
    }

    record.accepted = daemon.assurance >= Some(Assurance::Unrefuted);
    record.agreement = daemon.answer.is_some().then_some(daemon.agreement);
    record.votes = daemon.votes.first().map(|ballot| ballot.votes);
    let has_answer = daemon.answer.is_some();
    let mut record = judged(run, problem, daemon.answer, trace, record).await;
    if record.is_measured() {
        let Usage { prompt, completion, cached, .. } = daemon.tokens;
        let tokens = study.prompts.tokens(prompt, cached, completion);
        record.set_curve(has_answer.then_some((tokens, record.right)));
    }
    record
}
