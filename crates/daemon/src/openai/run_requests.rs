//! The run requests of a chat completion, one per choice.

use std::sync::Arc;

use super::answer_form::AnswerForm;
use super::message::{ChatTask, task_of};
use super::model_names::preset_of;
use super::problem::run_of;
use super::request::ChatRequest;
use crate::error::ApiError;
use prime_service::app::Overrides;
use prime_service::requests::{BudgetRequest, RunRequest};
use prime_settings::Settings;

/// Seeds have 63 bits.
const SEED_MASK: u64 = i64::MAX as u64;

/// The runs of a chat completion, and where their fields come from.
#[derive(Clone, Debug)]
pub struct RunRequests {
    pub runs: Vec<RunRequest>,
    /// The form of their answers.
    pub form: Arc<AnswerForm>,
    /// The part of the request that names the task, as errors call it.
    source: String,
    /// Fields that came from the chat completion's fields of the same name.
    outer: Vec<&'static str>,
    /// Fields that came from `prime`.
    of_prime: Vec<&'static str>,
    /// True if the problem was prose, so that the client does not know its fields by name.
    is_prose: bool,
}

/// True if a request has a problem to solve.
fn has_problem(request: &RunRequest) -> bool {
    request.task.is_some() || request.problem.is_some()
}

/// Fills the gaps of `above` from `below`. The task and its instance come from one of them.
fn merge(above: RunRequest, below: RunRequest) -> RunRequest {
    // Not field by field: an index of one and a task of the other would be an instance that nobody
    // named.
    let RunRequest { task, difficulty, index, base_seed, input, problem, .. } =
        if has_problem(&above) { above.clone() } else { below.clone() };

    RunRequest {
        task,
        difficulty,
        index,
        base_seed,
        input,
        problem,
        preset: above.preset.or(below.preset),
        strategy: above.strategy.or(below.strategy),
        vote: above.vote.or(below.vote),
        speculate: above.speculate.or(below.speculate),
        fanout: above.fanout.or(below.fanout),
        max_rounds: above.max_rounds.or(below.max_rounds),
        seed: above.seed.or(below.seed),
        temperature: above.temperature.or(below.temperature),
        top_p: above.top_p.or(below.top_p),
        approve: above.approve.or(below.approve),
        approve_within_ms: above.approve_within_ms.or(below.approve_within_ms),
        approve_else: above.approve_else.or(below.approve_else),
        budget: BudgetRequest {
            steps: above.budget.steps.or(below.budget.steps),
            tokens: above.budget.tokens.or(below.budget.tokens),
            completion_tokens: above.budget.completion_tokens.or(below.budget.completion_tokens),
            cost: above.budget.cost.or(below.budget.cost),
            wall_ms: above.budget.wall_ms.or(below.budget.wall_ms),
        },
        labels: if above.labels.is_empty() { below.labels } else { above.labels },
        force: above.force.or(below.force),
        priority: above.priority.or(below.priority),
        not_before: above.not_before.or(below.not_before),
        deadline: above.deadline.or(below.deadline),
        agents: Overrides {
            executor: above.agents.executor.or(below.agents.executor),
            verifier: above.agents.verifier.or(below.agents.verifier),
            coordinator: above.agents.coordinator.or(below.agents.coordinator),
        },
    }
}

/// The names of the options that a request sets.
fn fields_in(request: &RunRequest) -> Vec<&'static str> {
    let (budget, agents) = (&request.budget, &request.agents);
    let given = [
        ("preset", request.preset.is_some()),
        ("strategy", request.strategy.is_some()),
        ("vote", request.vote.is_some()),
        ("speculate", request.speculate.is_some()),
        ("fanout", request.fanout.is_some()),
        ("max_rounds", request.max_rounds.is_some()),
        ("seed", request.seed.is_some()),
        ("temperature", request.temperature.is_some()),
        ("top_p", request.top_p.is_some()),
        ("approve", request.approve.is_some()),
        ("approve_within_ms", request.approve_within_ms.is_some()),
        ("approve_else", request.approve_else.is_some()),
        ("budget.steps", budget.steps.is_some()),
        ("budget.tokens", budget.tokens.is_some()),
        ("budget.completion_tokens", budget.completion_tokens.is_some()),
        ("budget.cost", budget.cost.is_some()),
        ("budget.wall_ms", budget.wall_ms.is_some()),
        ("labels", !request.labels.is_empty()),
        ("force", request.force.is_some()),
        ("priority", request.priority.is_some()),
        ("not_before", request.not_before.is_some()),
        ("deadline", request.deadline.is_some()),
        ("agents.executor", agents.executor.is_some()),
        ("agents.verifier", agents.verifier.is_some()),
        ("agents.coordinator", agents.coordinator.is_some()),
    ];
    given.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
}

/// The first field of a request that selects an instance.
fn instance_in(request: &RunRequest) -> Option<&'static str> {
    let given = [
        ("input", request.input.is_some()),
        ("difficulty", request.difficulty.is_some()),
        ("index", request.index.is_some()),
        ("base_seed", request.base_seed.is_some()),
    ];

    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// The budget of completion tokens, from the chat completion's own fields.
fn completion_tokens_of(settings: &Settings, chat: &ChatRequest) -> Result<Option<u64>, ApiError> {
    // The newer name takes precedence.
    let (field, tokens) = match chat.max_completion_tokens {
        Some(tokens) => ("max_completion_tokens", Some(tokens)),
        None => ("max_tokens", chat.max_tokens),
    };

    let Some(tokens) = tokens else { return Ok(None) };

    // A configured limit of 0 means none.
    let limit = Some(settings.run.budget.completion_tokens).filter(|limit| *limit > 0);
    if tokens == 0 || limit.is_some_and(|limit| tokens > limit) {
        let range = limit.map_or("1 or more".to_owned(), |limit| {
            format!("1 to {limit}, the daemon's own limit")
        });
        return Err(ApiError::bad_field(field, format!("is {tokens}; give {range}")));
    }
    Ok(Some(tokens))
}

impl RunRequests {
    /// Resolves a chat completion.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn of(settings: &Settings, chat: &ChatRequest) -> Result<Self, ApiError> {
        let preset = preset_of(settings, &chat.model)?.map(str::to_owned);
        chat.check()?;
        let form = chat.answer_form()?;

        let mut is_prose = false;
        let outer = RunRequest {
            preset,
            temperature: chat.temperature,
            top_p: chat.top_p,
            // OpenAI's interface allows negative seeds, a run's does not.
            seed: chat.seed.map(|seed| seed.cast_unsigned() & SEED_MASK),
            budget: BudgetRequest {
                completion_tokens: completion_tokens_of(settings, chat)?,
                ..Default::default()
            },
            ..RunRequest::default()
        };

        let prime = chat.prime.clone().unwrap_or_default();
        // Before merging: afterwards nobody knows which fields came from where.
        let of_prime = fields_in(&prime);

        let (inner, source) = if has_problem(&prime) {
            (prime, "prime".to_owned())
        } else {
            if let Some(field) = instance_in(&prime) {
                let message = "needs `prime.task`, which is missing; the messages have an instance of their own";
                return Err(ApiError::bad_field(&format!("prime.{field}"), message));
            }
            let (task, source) = task_of(&chat.messages)?;
            let request = match task {
                ChatTask::Run(request) => *request,
                ChatTask::Text(statement) => {
                    is_prose = true;
                    run_of(&statement, &form)
                }
            };
            (merge(prime, request), source)
        };

        let inner_fields = fields_in(&inner);
        let outer_fields =
            fields_in(&outer).into_iter().filter(|field| !inner_fields.contains(field)).collect();

        let one = merge(inner, outer);
        let seed = one.seed.unwrap_or(settings.run.seed);

        let choice = |index: u32| {
            // The first choice has the given seed, so that one out of range is refused and not
            // mapped.
            let seed = if index == 0 { seed } else { seed.wrapping_add(index.into()) & SEED_MASK };
            RunRequest { seed: Some(seed), ..one.clone() }
        };

        let runs = (0..chat.choices()).map(choice).collect();
        Ok(Self { runs, form: Arc::new(form), source, outer: outer_fields, of_prime, is_prose })
    }

    /// Maps an error about a run request to the chat completion that it came from.
    // Without a field, it is about no part of the request.
    pub fn locate(&self, error: ApiError) -> ApiError {
        let Some(field) = error.body().error.field else { return error };
        // The client sent a field of this name itself.
        if self.outer.contains(&field.as_str()) {
            return error;
        }

        let message = error.to_string();
        let detail = message.strip_prefix(&format!("field `{field}`: ")).unwrap_or(&message);

        if self.is_prose && field == "problem" {
            let example = r#"{"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}}"#;
            let message = format!(
                "is in words, but {detail}; or send a task of the benchmark as JSON, such as {example} (GET /v1/tasks lists \
                 them)"
            );
            return ApiError::bad_field(&self.source, message);
        }

        if self.source == "prime" || self.of_prime.contains(&field.as_str()) {
            return ApiError::bad_field(&format!("prime.{field}"), detail);
        }
        ApiError::bad_field(&self.source, format!("`{field}`: {detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn chat(fields: &Value) -> ChatRequest {
        let mut request = json!({
            "model": "prime",
            "messages": [{"role": "user", "content": "{\"task\": \"n-queens\", \"index\": 3, \"fanout\": 2}"}],
        });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(request).unwrap()
    }

    fn requests(fields: &Value) -> Result<RunRequests, ApiError> {
        RunRequests::of(&Settings::default(), &chat(fields))
    }

    fn one(fields: &Value) -> RunRequest {
        let mut requests = requests(fields).unwrap();
        assert_eq!(requests.runs.len(), 1);
        requests.runs.remove(0)
    }

    #[test]
    fn the_more_specific_field_takes_precedence() {
        let run = one(
            &json!({"model": "prime/fast", "temperature": 0.5, "max_tokens": 9, "max_completion_tokens": 8}),
        );

        assert_eq!(
            (run.task.as_deref(), run.index, run.fanout),
            (Some("n-queens"), Some(3), Some(2))
        );
        assert_eq!((run.preset.as_deref(), run.temperature), (Some("fast"), Some(0.5)));
        assert_eq!(
            (run.budget.completion_tokens, run.seed),
            (Some(8), Some(42)),
            "the configured seed is explicit"
        );

        let run = one(
            &json!({"temperature": 0.5, "prime": {"temperature": 0.1, "fanout": 7, "preset": "careful"}}),
        );
        assert_eq!(
            (run.task.as_deref(), run.index, run.fanout),
            (Some("n-queens"), Some(3), Some(7))
        );
        assert_eq!((run.temperature, run.preset.as_deref()), (Some(0.1), Some("careful")));

        let run = one(&json!({"prime": {"task": "bubble-sort"}}));
        assert_eq!((run.task.as_deref(), run.index, run.fanout), (Some("bubble-sort"), None, None));

        let run = one(
            &json!({"messages": [{"role": "user", "content": null}], "prime": {"task": "bubble-sort"}}),
        );
        assert_eq!(run.task.as_deref(), Some("bubble-sort"), "the messages are ignored");
    }

    #[test]
    fn choices_have_consecutive_seeds_and_negative_ones_are_mapped() {
        for (fields, seeds) in [
            (json!({"n": 3}), vec![42, 43, 44]),
            (json!({"n": 2, "seed": 7}), vec![7, 8]),
            (json!({"n": 2, "seed": i64::MAX}), vec![0x7fff_ffff_ffff_ffff, 0]),
            (json!({"n": 2, "seed": -1}), vec![0x7fff_ffff_ffff_ffff, 0]),
            (json!({"seed": i64::MIN}), vec![0]),
            (json!({"seed": -5}), vec![0x7fff_ffff_ffff_fffb]),
            (json!({"seed": 7, "prime": {"seed": 9}}), vec![9]),
        ] {
            let given: Vec<_> =
                requests(&fields).unwrap().runs.iter().map(|run| run.seed.unwrap()).collect();
            assert_eq!(given, seeds, "{fields}");
        }
    }

    #[test]
    fn errors_name_the_part_of_the_chat_completion() {
        let task = || ApiError::bad_field("task", "there is none");
        let wrong = |error: ApiError| (error.body().error.param.unwrap(), error.to_string());

        let (param, message) = wrong(requests(&json!({})).unwrap().locate(task()));
        assert_eq!(param, "messages[0].content");
        assert_eq!(message, "field `messages[0].content`: `task`: there is none");

        let (param, message) =
            wrong(requests(&json!({"prime": {"task": "x"}})).unwrap().locate(task()));
        assert_eq!(
            (param.as_str(), message.as_str()),
            ("prime.task", "field `prime.task`: there is none")
        );

        let fanout = ApiError::bad_field("fanout", "is 0");
        assert_eq!(
            wrong(requests(&json!({"prime": {"fanout": 0}})).unwrap().locate(fanout)).0,
            "prime.fanout"
        );

        let outer = requests(&json!({"temperature": 1}))
            .unwrap()
            .locate(ApiError::bad_field("temperature", "no"));
        assert_eq!(wrong(outer).0, "temperature");
    }

    #[test]
    fn token_limits_are_within_the_configured_budget() {
        let mut limited = Settings::default();
        limited.run.budget.completion_tokens = 1_000;
        for (settings, field, given, range) in [
            (&Settings::default(), "max_tokens", 0_u64, "give 1 or more"),
            (&limited, "max_tokens", 0, "1 to 1000"),
            (&limited, "max_completion_tokens", 1_001, "1 to 1000"),
        ] {
            let chat = chat(&json!({ field: given }));
            let error = completion_tokens_of(settings, &chat).unwrap_err();
            assert_eq!(error.body().error.param.as_deref(), Some(field));
            assert!(error.to_string().contains(range), "{error}");
        }

        assert_eq!(
            completion_tokens_of(&limited, &chat(&json!({"max_tokens": 1_000}))).unwrap(),
            Some(1_000)
        );
        assert_eq!(
            one(&json!({"max_tokens": 100_000_000})).budget.completion_tokens,
            Some(100_000_000)
        );
    }

    #[test]
    fn an_instance_without_its_task_is_refused() {
        for (field, given) in [
            ("input", json!({"n": 4})),
            ("difficulty", json!("easy")),
            ("index", json!(3)),
            ("base_seed", json!(7)),
        ] {
            let error = requests(&json!({"prime": {field: given}})).unwrap_err();
            assert_eq!(error.body().error.param, Some(format!("prime.{field}")), "{error}");
        }
    }

    #[test]
    fn prose_is_a_problem_with_the_requested_answer_format() {
        let words = json!([{"role": "system", "content": "Be exact."}, {"role": "user", "content": "2 + 2?"}]);
        let format = json!({"type": "json_schema", "json_schema": {"name": "sum", "schema": {"type": "integer"}}});
        let requests = requests(&json!({"messages": words, "response_format": format})).unwrap();
        let problem = requests.runs[0].problem.as_ref().unwrap();
        assert_eq!(problem["statement"], "Be exact.\n\n2 + 2?");
        assert_eq!(problem["answer"], json!({"schema": {"type": "integer"}}));

        let wrong =
            |field| requests.locate(ApiError::bad_field(field, "no")).body().error.param.unwrap();
        assert_eq!(wrong("problem.statement"), "messages[1].content");

        let unread =
            requests.locate(ApiError::bad_field("problem", "the executor `x` cannot read it"));
        assert_eq!(unread.body().error.param.as_deref(), Some("messages[1].content"));
        let message = unread.to_string();
        assert!(
            message.contains("is in words, but the executor `x`") && message.contains("/v1/tasks"),
            "{message}"
        );
    }
}
