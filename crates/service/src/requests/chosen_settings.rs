//! The settings with a request's choices, within what the configuration allows.

use super::error::{Reason, RequestError};
use super::run_request::RunRequest;
use crate::app::Overrides;
use prime_settings::{ApprovalRule, Preset, Run, Server, Settings, SettingsError};

/// Largest budget of money that a configuration may have.
const COST_MAX: f64 = 1e9;

/// The settings of a request, and the agents that it chooses.
pub struct ChosenSettings {
    pub settings: Settings,
    pub overrides: Overrides,
}

impl ChosenSettings {
    /// Applies a request's choices, and those of its preset, to the configured settings.
    ///
    /// # Errors
    /// The first field whose value is out of range or not allowed.
    pub fn of(settings: &Settings, request: &RunRequest) -> Result<Self, RequestError> {
        // A preset may name agents that requests may not: the operator wrote it. So only the
        // request's own choice is checked.
        check_overrides(&settings.server, &request.agents)?;

        let preset = preset_of(settings, request)?.cloned().unwrap_or_default();
        let overrides = agents_of(request, &preset);
        let settings = settings_of(settings, request, &preset, &overrides)?;
        Ok(Self { settings, overrides })
    }
}

/// The preset that a request names.
fn preset_of<'a>(
    settings: &'a Settings,
    request: &RunRequest,
) -> Result<Option<&'a Preset>, RequestError> {
    let Some(name) = &request.preset else { return Ok(None) };
    let preset = settings.presets.get(name).ok_or_else(|| {
        let known = settings.presets.keys().cloned().collect();
        RequestError::field("preset", Reason::UnknownPreset { name: name.clone(), known })
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

/// The settings with a request's choices, checked against the same ranges as a configuration.
fn settings_of(
    settings: &Settings,
    request: &RunRequest,
    preset: &Preset,
    agents: &Overrides,
) -> Result<Settings, RequestError> {
    let mut settings = agents.apply(settings);
    let run = &mut settings.run;
    run.strategy = request.strategy.or(preset.strategy).unwrap_or(run.strategy);
    run.vote = request.vote.or(preset.vote).unwrap_or(run.vote);
    run.speculate = request.speculate.or(preset.speculate).unwrap_or(run.speculate);
    run.fanout = request.fanout.or(preset.fanout).unwrap_or(run.fanout);
    run.max_rounds = request.max_rounds.or(preset.max_rounds).unwrap_or(run.max_rounds);
    run.seed = request.seed.unwrap_or(run.seed);
    run.temperature = request.temperature.or(preset.temperature).unwrap_or(run.temperature);
    run.top_p = request.top_p.or(preset.top_p).unwrap_or(run.top_p);

    choose_approval(run, request)?;

    // The configured budget is both the default and the limit of what a request may ask for.
    let limits = run.budget.clone();
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
            return Err(RequestError::field(field, Reason::OverLimit { given: choice, limit }));
        }
        *value = choice;
    }

    if let Some(cost) = budget.cost.or(otherwise.cost) {
        run.budget.cost = within(cost, limits.cost)?;
    }

    settings.validate().map_err(out_of_range)?;
    Ok(settings)
}

/// The rule of approvals. That of the daemon is its operator's, and applies to all runs.
fn choose_approval(run: &mut Run, request: &RunRequest) -> Result<(), RequestError> {
    let RunRequest { approve, approve_within_ms, approve_else, .. } = request;
    let changed = [
        ("approve", approve.as_ref().is_some_and(|rule| rule.trim() != run.approve.trim())),
        ("approve_within_ms", approve_within_ms.is_some_and(|ms| ms != run.approve_within_ms)),
        ("approve_else", approve_else.is_some_and(|otherwise| otherwise != run.approve_else)),
    ];
    if let Some((field, _)) = changed.into_iter().find(|(_, is_changed)| *is_changed)
        && !run.approve.trim().is_empty()
    {
        let rule = run.approve.clone();
        return Err(RequestError::field(field, Reason::ApprovalIsFixed { rule }));
    }

    if let Some(rule) = approve {
        ApprovalRule::read(rule)
            .map_err(|reason| RequestError::field("approve", Reason::BadApproval { reason }))?;
        run.approve.clone_from(rule);
    }
    run.approve_within_ms = approve_within_ms.unwrap_or(run.approve_within_ms);
    run.approve_else = approve_else.unwrap_or(run.approve_else);
    Ok(())
}

/// A budget of money within the configured one, which 0 does not limit.
fn within(cost: f64, limit: f64) -> Result<f64, RequestError> {
    if cost > 0.0 && (limit == 0.0 || cost <= limit) {
        return Ok(cost);
    }
    let most =
        if limit > 0.0 { format!("{limit}, the daemon's own limit") } else { COST_MAX.to_string() };
    let reason = Reason::OutOfRange {
        found: cost.to_string(),
        expected: format!("a number above 0 and up to {most}"),
    };
    Err(RequestError::field("budget.cost", reason))
}

/// Maps a setting out of range to the field of the request that it came from.
fn out_of_range(error: SettingsError) -> RequestError {
    match error {
        SettingsError::OutOfRange { key, found, expected, .. }
        | SettingsError::WrongType { key, found, expected, .. } => {
            let field = key.strip_prefix("run.").unwrap_or(&key).to_owned();
            RequestError::field(field, Reason::OutOfRange { found, expected })
        }
        error => RequestError::Settings(Box::new(error)),
    }
}

/// Checks that the configuration lets a request choose these agents.
///
/// # Errors
/// The first one that it may not choose; its field is `agents.` and the role.
pub fn check_overrides(server: &Server, overrides: &Overrides) -> Result<(), RequestError> {
    for (field, choice, option, allowed) in [
        ("agents.executor", &overrides.executor, "server.allow_executors", &server.allow_executors),
        ("agents.verifier", &overrides.verifier, "server.allow_verifiers", &server.allow_verifiers),
        (
            "agents.coordinator",
            &overrides.coordinator,
            "server.allow_coordinators",
            &server.allow_coordinators,
        ),
    ] {
        if let Some(choice) = choice
            && !allowed.contains(choice)
        {
            let (agent, allowed) = (choice.clone(), allowed.clone());
            let reason = Reason::AgentNotAllowed { agent, option, allowed };
            return Err(RequestError::field(field, reason));
        }
    }
    Ok(())
}
