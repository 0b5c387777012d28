//! Resolves a request to a run's spec: the settings with the request's overrides, within the
//! configured limits.

use std::sync::Arc;

use serde_json::Value;

use super::error::ApiError;
use super::wire::RunRequest;
use prime_agent_set::{AgentSet, Agents, Names};
use prime_bench::tasks::instance::read_problem;
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Kind, Kinds, Problem};
use prime_problems::Custom;
use prime_protocol::{Role, RunPlan};
use prime_report::Arm;
use prime_service::app::{App, Overrides, check_learnt, run_plan, run_sampling, split};
use prime_service::runs::{RunError, RunSpec};
use prime_settings::{Preset, Server, Settings, SettingsError};

/// The preset that a request names.
fn preset_of<'a>(
    settings: &'a Settings,
    request: &RunRequest,
) -> Result<Option<&'a Preset>, ApiError> {
    let Some(name) = &request.preset else { return Ok(None) };
    let preset = settings.presets.get(name).ok_or_else(|| {
        let known: Vec<_> = settings.presets.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "there are none".to_owned()
        } else {
            format!("known: {}", known.join(", "))
        };
        ApiError::bad_field(
            "preset",
            format!("there is no preset {name:?} (section `presets`); {known}"),
        )
    })?;
    Ok(Some(preset))
}

/// The agents of a request: its own choice, else its preset's.
fn agents_of(request: &RunRequest, preset: &Preset) -> Overrides {
    let own = request.agents.clone();
    Overrides {
        executor: own.executor.or_else(|| preset.executor.clone()),
        verifier: own.verifier.or_else(|| preset.verifier.clone()),
        coordinator: own.coordinator.or_else(|| preset.coordinator.clone()),
    }
}

/// The settings with a request's overrides, checked against the same ranges.
fn settings_of(
    settings: &Settings,
    request: &RunRequest,
    preset: &Preset,
    agents: &Overrides,
) -> Result<Settings, ApiError> {
    let mut settings = agents.apply(settings);
    let run = &mut settings.run;
    let limits = run.budget.clone();
    run.strategy = request.strategy.or(preset.strategy).unwrap_or(run.strategy);
    run.vote = request.vote.or(preset.vote).unwrap_or(run.vote);
    run.speculate = request.speculate.or(preset.speculate).unwrap_or(run.speculate);
    run.fanout = request.fanout.or(preset.fanout).unwrap_or(run.fanout);
    run.max_rounds = request.max_rounds.or(preset.max_rounds).unwrap_or(run.max_rounds);
    run.seed = request.seed.unwrap_or(run.seed);
    run.temperature = request.temperature.or(preset.temperature).unwrap_or(run.temperature);
    run.top_p = request.top_p.or(preset.top_p).unwrap_or(run.top_p);
    let (budget, otherwise) = (&request.budget, &preset.budget);
    for (field, choice, otherwise, limit, value) in [
        ("budget.steps", budget.steps, otherwise.steps, limits.steps, &mut run.budget.steps),
        ("budget.tokens", budget.tokens, otherwise.tokens, limits.tokens, &mut run.budget.tokens),
        (
            "budget.completion_tokens",
            budget.completion_tokens,
            otherwise.completion_tokens,
            limits.completion_tokens,
            &mut run.budget.completion_tokens,
        ),
        (
            "budget.wall_ms",
            budget.wall_ms,
            otherwise.wall_ms,
            limits.wall_ms,
            &mut run.budget.wall_ms,
        ),
    ] {
        let Some(choice) = choice.or(otherwise) else { continue };
        // A configured limit of 0 means none.
        if choice == 0 || (limit > 0 && choice > limit) {
            let range = if limit > 0 {
                format!("1 to {limit}, the daemon's own limit")
            } else {
                "1 or more".to_owned()
            };
            return Err(ApiError::bad_field(field, format!("is {choice}; give {range}")));
        }
        *value = choice;
    }
    settings.validate().map_err(|error| refused(&error))?;
    Ok(settings)
}

/// Maps a setting out of range to the field of the request that it came from.
fn refused(error: &SettingsError) -> ApiError {
    match error {
        SettingsError::OutOfRange { key, found, expected, .. }
        | SettingsError::WrongType { key, found, expected, .. } => {
            let field = key.strip_prefix("run.").unwrap_or(key);
            ApiError::bad_field(field, format!("is {found}, but must be {expected}"))
        }
        error => ApiError::bad_request(error.to_string()),
    }
}

/// Checks that the configuration lets a request choose these agents.
///
/// # Errors
/// The first one that it may not choose; its field is `agents.` and the role.
pub fn check_overrides(server: &Server, overrides: &Overrides) -> Result<(), ApiError> {
    for (field, choice, allowed) in [
        ("agents.executor", &overrides.executor, &server.allow_executors),
        ("agents.verifier", &overrides.verifier, &server.allow_verifiers),
        ("agents.coordinator", &overrides.coordinator, &server.allow_coordinators),
    ] {
        if let Some(choice) = choice
            && !allowed.contains(choice)
        {
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            let option = field.replace("agents.", "server.allow_");
            return Err(ApiError::bad_field(
                field,
                format!("{choice:?} is not allowed here; allowed ({option}s): {allowed}"),
            ));
        }
    }
    Ok(())
}

/// A custom problem.
fn custom(request: &RunRequest, problem: &Value) -> Result<Arc<dyn Problem>, ApiError> {
    let others = [
        ("task", request.task.is_some()),
        ("input", request.input.is_some()),
        ("difficulty", request.difficulty.is_some()),
        ("index", request.index.is_some()),
        ("base_seed", request.base_seed.is_some()),
    ];
    if let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
        return Err(ApiError::bad_field(other, "does not go with `problem`: give one of the two"));
    }
    let custom = Custom::read(problem)
        .map_err(|error| ApiError::bad_value(&error.path, error.to_string()))?;
    Ok(custom.problem())
}

/// Whether there are constraints in prose, which the verifier reads.
///
/// # Errors
/// When there are some and the verifier cannot read them.
fn reads_all(problem: &dyn Problem, agents: &AgentSet) -> Result<bool, ApiError> {
    if !problem.needs_reader() {
        return Ok(false);
    }
    if agents.verifier().reads_words() {
        return Ok(true);
    }
    let first = problem.rules().into_iter().find(|rule| rule.kind.is_none());
    let message = format!(
        "the constraint {:?} is in prose, which the verifier `{}` cannot read: write it as a `check`, or choose a \
         verifier that is a language model (`agents.verifier`)",
        first.map(|rule| rule.name).unwrap_or_default(),
        agents.names().verifier
    );
    Err(ApiError::bad_field("problem.constraints", message))
}

/// The instance that a request names or contains. May compute for milliseconds.
pub fn problem_of(request: &RunRequest) -> Result<(String, Arc<dyn Problem>), ApiError> {
    if let Some(problem) = &request.problem {
        return custom(request, problem).map(|problem| ("input".to_owned(), problem));
    }
    let Some(task) = &request.task else {
        return Err(ApiError::bad_request(
            "body: missing field `task`: give a task's slug, as GET /v1/tasks lists them, or a `problem`",
        ));
    };
    let task = tasks::find(task).map_err(|error| ApiError::bad_field("task", error))?;
    if let Some(input) = &request.input {
        if request.difficulty.is_some() || request.index.is_some() || request.base_seed.is_some() {
            return Err(ApiError::bad_field(
                "input",
                "give either an input, or difficulty, index and base_seed",
            ));
        }
        let problem =
            read_problem(task, input).map_err(|error| ApiError::bad_field("input", error))?;
        return Ok(("input".to_owned(), problem));
    }
    let difficulty = request.difficulty.unwrap_or(Difficulty::Easy);
    let base_seed = request.base_seed.unwrap_or(BASE_SEED);
    let id = InstanceId::new(task, difficulty, request.index.unwrap_or(0), base_seed)
        .map_err(|error| ApiError::bad_field("index", error))?;
    Ok((id.to_string(), id.problem()))
}

/// A request, checked as far as possible without agents.
pub struct Checked {
    /// The agents that it chooses, or that its side of a comparison has.
    pub overrides: Overrides,
    pub split: Option<Arm>,
    /// With its overrides and these agents.
    pub settings: Settings,
    /// The name of its instance.
    pub instance: String,
    pub problem: Arc<dyn Problem>,
}

/// Checks a request as far as possible without agents. May compute for milliseconds.
///
/// # Errors
/// The first invalid field.
pub fn checked(settings: &Settings, request: &RunRequest) -> Result<Checked, ApiError> {
    check_overrides(&settings.server, &request.agents)?;
    let preset = preset_of(settings, request)?.cloned().unwrap_or_default();
    let mut overrides = agents_of(request, &preset);
    let settings = settings_of(settings, request, &preset, &overrides)?;
    let (instance, problem) = problem_of(request)?;
    let split = split::assign(
        &settings.agents.split,
        &mut overrides,
        settings.run.seed,
        &instance,
        problem.as_ref(),
    );
    let settings = overrides.apply(&settings);
    Ok(Checked { overrides, split, settings, instance, problem })
}

/// The kinds of constraints of a custom problem.
fn check_kinds(problem: &dyn Problem) -> Vec<Kind> {
    let mut kinds = Vec::new();
    if !problem.has_reference() {
        kinds.extend(
            problem.rules().into_iter().filter_map(|rule| rule.kind).collect::<Kinds>().iter(),
        );
    }
    kinds
}

/// Checks that agents can work on a problem, and says whether the verifier reads constraints in
/// prose.
///
/// # Errors
/// The agent that cannot.
fn check_agents(agents: &AgentSet, problem: &dyn Problem) -> Result<bool, ApiError> {
    if agents.needs_algorithm() && !problem.has_reference() {
        let message = format!(
            "the executor `{}` follows a task's algorithm, and a custom problem has none: configure a model, or \
             choose another executor (`agents.executor`)",
            agents.names().executor
        );
        return Err(ApiError::bad_field("problem", message));
    }
    if !agents.reads_prose() && !problem.has_reference() {
        let message = format!(
            "the executor `{}` is a model for the tasks of the benchmark (`agents.executor.prompt` is `compact`) and cannot \
             read it: configure a model that follows instructions, with the prompt `step`, or choose another executor \
             (`agents.executor`)",
            agents.names().executor
        );
        return Err(ApiError::bad_field("problem", message));
    }
    reads_all(problem, agents)
}

/// The spec and the problem of a request. May compute for milliseconds; must be called within an
/// actix system.
///
/// # Errors
/// The first invalid field.
pub fn spec_of(
    app: &App,
    request: &RunRequest,
    traceparent: Option<String>,
) -> Result<(RunSpec, Arc<dyn Problem>), ApiError> {
    let Checked { overrides, split, settings, instance, problem } =
        checked(app.settings(), request)?;
    let agents = app
        .agents_with(&overrides)
        .map_err(|error| ApiError::bad_field("agents.executor", error))?;
    if problem.has_reference() && !request.force.unwrap_or(false) {
        let advice = |error| {
            ApiError::bad_field("task", format!("{error}; to try all the same, set `force`"))
        };
        check_learnt(&settings, problem.spec()).map_err(advice)?;
    }
    let is_read = check_agents(&agents, problem.as_ref())?;
    let mut plan = run_plan(&settings, agents.basis(), problem.as_ref());
    plan.is_checked |= is_read;
    let spec = RunSpec {
        task: problem.spec().slug.to_owned(),
        instance,
        input: problem.input(),
        plan,
        sampling: run_sampling(&settings),
        overrides,
        agents: agents.names().clone(),
        recorded: app.record_for(&agents, problem.spec().slug),
        notes: agents.notes().to_vec(),
        check_kinds: check_kinds(problem.as_ref()),
        config_hash: settings.hash(),
        split,
        forked_from: None,
        traceparent,
    };
    Ok((spec, problem))
}

/// The spec of a run with some other agents; the rest are taken by their names from the present
/// configuration. May compute for milliseconds; must be called within an actix system.
///
/// # Errors
/// The first agent that may not be chosen, or cannot work on the problem.
pub fn refitted(app: &App, parent: RunSpec, chosen: &Overrides) -> Result<RunSpec, ApiError> {
    let of_agents = |error| ApiError::bad_field("agents", error);
    check_overrides(&app.settings().server, chosen)?;
    let mut overrides = Overrides::from(&parent.agents);
    for role in Role::ALL {
        if let Some(name) = chosen.agent(role) {
            overrides.choose(role, name);
        }
    }
    let settings = overrides.apply(app.settings());
    let problem = parent.problem().map_err(RunError::Unreadable)?;
    let agents = app.agents_with(&overrides).map_err(|error| of_agents(error.to_string()))?;
    if problem.has_reference() {
        check_learnt(&settings, problem.spec()).map_err(|error| of_agents(error.to_string()))?;
    }
    let is_read =
        check_agents(&agents, problem.as_ref()).map_err(|error| error.moved_to("agents"))?;
    let plan = run_plan(&settings, agents.basis(), problem.as_ref());
    let (is_checked, checks_end) =
        (plan.is_checked || is_read, plan.checks_end && parent.plan.checks_end);
    let mut notes = agents.notes().to_vec();
    let Names { executor, verifier, coordinator } = &parent.agents;
    notes.push(format!(
        "forked: the events before are by the agents {executor}, {verifier}, {coordinator}"
    ));
    Ok(RunSpec {
        plan: RunPlan { is_checked, checks_end, ..parent.plan },
        recorded: app.record_for(&agents, &parent.task),
        agents: agents.names().clone(),
        overrides,
        notes,
        config_hash: settings.hash(),
        split: None,
        ..parent
    })
}
