//! The route that has an agent take one turn in the state of a recorded step: what it is asked,
//! what it answers, and what the others make of it. Changes nothing.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::background::in_background;
use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, json};
use super::parameters::step_number;
use super::request_context::{authorized_run, owner_of};
use super::state::State;
use prime_agent_set::Names;
use prime_protocol::{Opinion, Role, Usage, Verdict};
use prime_service::app::Overrides;
use prime_service::app::turn::{Edited, Exchange, Exchanges, TriedTurn, TurnInput, try_turn};
use prime_service::requests::check_overrides;
use prime_service::runs::{BeforeStep, RunError, decision_name};

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/steps/{seq}/try")
            .route(web::post().to(try_agent))
            .default_service(web::to(|| method_not_allowed("POST"))),
    );
}

/// Which agent to try.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryRequest {
    /// `executor` proposes a line, which the verifier and the coordinator then judge; for the
    /// others a line is given.
    pub role: Role,
    /// The agent, among `server.allow_executors` and so on; by default the run's own, as it was
    /// accepted with.
    #[schema(nullable = false)]
    pub agent: Option<String>,
    /// For `verifier` and `coordinator`: the line to judge; the recorded one by default.
    #[schema(nullable = false)]
    pub action: Option<String>,
    /// For `executor`: the run's seed, from which that of the turn derives; by default the recorded
    /// one.
    #[schema(nullable = false)]
    pub seed: Option<u64>,
    /// The prompt of the turn's first request to a model, instead of the agent's own. Grammar,
    /// excluded lines and limits stay those of the turn.
    #[schema(nullable = false)]
    pub prompt: Option<String>,
    /// The system prompt of that request, instead of the agent's own; empty = none.
    #[schema(nullable = false)]
    pub system: Option<String>,
}

/// A request to a model, and its answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelExchange {
    /// The instructions that stay the same from turn to turn; null if there are none.
    pub system: Option<String>,
    pub prompt: String,
    /// What the model read, with its chat template and special tokens; left out for a server, which
    /// applies a template of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exact: Option<String>,
    /// The completion as the model wrote it; null if there is none.
    pub answer: Option<String>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<String>,
    /// True if the completion was cut at its limit of tokens.
    pub cut: bool,
    pub usage: Usage,
    /// Which of several servers answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub source: Option<String>,
}

/// What a verifier says about a line.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedVerdict {
    /// Σ of the violations' severities.
    #[schema(minimum = 0.0)]
    pub score: f64,
    /// The names of the violated constraints.
    pub violations: Vec<String>,
    /// The feedback to the executor; null if there is none.
    pub feedback: Option<String>,
    /// ln p of the verdict, where a model gave it as a single token.
    pub logprob: Option<f64>,
    /// The findings of each verifier of an ensemble.
    pub opinions: Vec<Opinion>,
    pub needs_review: bool,
}

/// A turn that was tried, as far as it got.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedStep {
    pub run: String,
    /// The number of the step's event.
    pub seq: u64,
    /// The agents of the turn.
    pub agents: Names,
    /// The requests to models, in the order of their answers; none if no agent that took part is a
    /// model.
    pub exchanges: Vec<ModelExchange>,
    /// What the executor wrote before its line; null if it was not asked, or wrote nothing.
    pub derivation: Option<String>,
    /// The line that was judged; null if there is none.
    pub action: Option<String>,
    /// Whether it is the line of the recorded step; null if there is none.
    pub same: Option<bool>,
    /// Why the line cannot be applied in this state; null if it can be.
    pub refusal: Option<String>,
    /// Null if the turn did not get that far.
    pub verdict: Option<TriedVerdict>,
    /// `proceed`, `retry` or `backtrack`; null if the turn did not get that far.
    pub decision: Option<String>,
    /// Why the turn went no further; null if it was complete.
    pub failure: Option<String>,
}

impl From<Exchange> for ModelExchange {
    fn from((request, answer): Exchange) -> Self {
        let (system, prompt) = (request.system, request.prompt);
        match answer {
            Ok(reply) => Self {
                system,
                prompt,
                exact: reply.exact.map(|exact| exact.text),
                answer: Some(reply.text),
                failure: None,
                cut: reply.is_truncated,
                usage: reply.usage,
                source: reply.source.as_deref().map(str::to_owned),
            },
            Err(error) => Self {
                system,
                prompt,
                exact: None,
                answer: None,
                failure: Some(error.to_string()),
                cut: false,
                usage: Usage::default(),
                source: None,
            },
        }
    }
}

impl From<Verdict> for TriedVerdict {
    fn from(verdict: Verdict) -> Self {
        Self {
            score: verdict.score.value(),
            violations: verdict.violations.into_iter().map(std::borrow::Cow::into_owned).collect(),
            feedback: verdict.feedback,
            logprob: verdict.logprob.map(f64::from),
            opinions: verdict.opinions,
            needs_review: verdict.needs_review,
        }
    }
}

/// The turn's input for a role.
fn input_of(wanted: TryRequest, before: &BeforeStep) -> Result<TurnInput, ApiError> {
    let BeforeStep { spec, id, trajectory, line } = before;
    if wanted.role == Role::Executor {
        if wanted.action.is_some() {
            return Err(ApiError::bad_field(
                "action",
                "is for the roles `verifier` and `coordinator`",
            ));
        }
        // The seed of the turn, and not the run's: derived as the run itself did.
        let mut sampling = spec.sampling;
        sampling.seed = wanted.seed.unwrap_or(sampling.seed);
        return Ok(TurnInput::Propose(sampling.of_turn(
            &spec.plan.strategy,
            spec.plan.fanout,
            *id,
            trajectory,
        )));
    }

    if wanted.seed.is_some() {
        return Err(ApiError::bad_field("seed", "is for the role `executor`"));
    }

    let line = wanted.action.unwrap_or_else(|| line.clone());
    if line.is_empty() {
        return Err(ApiError::bad_field("action", "the recorded step has no line: give one"));
    }
    Ok(TurnInput::Judge(line))
}

/// Has an agent take one turn in the state of a step.
///
/// The agent is given the rejected lines and the feedback that were known then. The run's own
/// agents are those that it was accepted with; if the request replaces one, all agents are taken by
/// their names from the present configuration. Models are asked anew: an engine with the recorded
/// seed gives the recorded answer, a server need not. Nothing is recorded, and no run's budget pays
/// for it; what it costs counts towards the day of the key (`server.key_cost_per_day_max`). With such a
/// limit, the turns of a key are taken one after another, and each to its end, even if its client
/// disconnects.
#[utoipa::path(
    post, path = "/v1/runs/{id}/steps/{seq}/try", tag = "runs", operation_id = "try_agent",
    params(("id", description = "The run's `id`"), ("seq" = u64, description = "The number of the step's event")),
    request_body(content = TryRequest, examples(
        ("the run's own executor" = (value = json!({"role": "executor"}))),
        ("another prompt" = (value = json!({"role": "executor", "prompt": "Write the next line."}))),
        ("another verifier, another line" = (value = json!({"role": "verifier", "agent": "rules", "action": "cmp 0 1"}))),
    )),
    responses(
        (status = 200, description = "The turn, as far as it came", body = TriedStep),
        (status = 409, description = "An agent of the run cannot be built at present", body = ErrorBody),
    ),
)]
pub async fn try_agent(
    state: web::Data<State>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let (id, seq) = path.into_inner();
    let wanted: TryRequest = json(&body.0)?;
    let run = authorized_run(&state, &request, &id).await?;
    let seq = step_number(&seq)?;

    let app = state.runs.app();
    // Only an agent that the request names needs permission: the run's own were accepted with it.
    let mut chosen = Overrides::default();
    if let Some(agent) = &wanted.agent {
        chosen.choose(wanted.role, agent);
        check_overrides(app.settings(), &chosen).map_err(|error| error.moved_to("agent"))?;
    }

    let owner = owner_of(&request);
    let paid = state.runs.begin_try(&owner).await?;

    let mut before = state.runs.store().before_step(&id, seq).await?;
    // The agents of an imported run may be anything: this daemon's own take their turns.
    let is_foreign = run.imported.is_some();
    let mut overrides =
        if is_foreign { Overrides::default() } else { Overrides::from(&before.spec.agents) };
    // With another agent, the record no longer describes the set: then all are taken by their
    // names.
    let record = before.spec.recorded.clone().filter(|_| wanted.agent.is_none() && !is_foreign);
    if let Some(agent) = &wanted.agent {
        overrides.choose(wanted.role, agent);
    }

    let is_own = wanted.agent.is_none();
    let edited = Edited { system: wanted.system.clone(), prompt: wanted.prompt.clone() };
    let first_edited = if edited.prompt.is_some() { "prompt" } else { "system" };
    let is_edited = edited.is_some();
    let input = input_of(wanted, &before)?;

    let exchanges = Exchanges::edited(edited);
    let tap = exchanges.tap();
    let agents = in_background(move || app.tapped_agents(record.as_ref(), &overrides, tap)).await?;

    let agents = agents.map_err(|reason| {
        if is_own {
            ApiError::from(RunError::Conflict(reason))
        } else {
            ApiError::bad_field("agent", reason)
        }
    })?;

    let (runs, is_paid) = (Arc::clone(&state.runs), paid.is_some());
    let taking = async move {
        let turn = try_turn(&agents, &mut before.trajectory, input).await;
        let exchanges: Vec<_> = exchanges.take().into_iter().map(ModelExchange::from).collect();
        for cost in exchanges.iter().filter_map(|exchange| exchange.usage.cost) {
            runs.count_try(&owner, cost);
        }
        // Only now, so that the next turn of the key finds what this one has cost.
        drop(paid);
        (turn, exchanges, agents.names().clone(), before.line)
    };
    // What must be paid for is counted even if the client is gone; other turns end with it.
    let (turn, exchanges, names, recorded_line) = if is_paid {
        actix_web::rt::spawn(taking).await.map_err(|_| RunError::Draining)?
    } else {
        taking.await
    };
    let TriedTurn { proposal, line, refusal, verdict, ruling, failure } = turn;
    if is_edited && exchanges.is_empty() && failure.is_none() {
        let reason = "no agent of this turn asked a model: leave it out, or try another agent";
        return Err(ApiError::bad_field(first_edited, reason));
    }

    Ok(HttpResponse::Ok().json(TriedStep {
        run: id,
        seq,
        agents: names,
        exchanges,
        derivation: proposal.map(|proposal| proposal.derivation).filter(|text| !text.is_empty()),
        same: line.as_ref().map(|line| *line == recorded_line),
        action: line,
        refusal,
        verdict: verdict.map(TriedVerdict::from),
        decision: ruling.map(|ruling| decision_name(ruling.decision).to_owned()),
        failure: failure.map(|error| error.to_string()),
    }))
}
