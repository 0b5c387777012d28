//! The settings with a request's choices, within what the configuration allows.

use super::chosen_budget::choose_budget;
use super::error::{Reason, RequestError};
use super::run_request::RunRequest;
use crate::app::Overrides;
use prime_agent_set::configured_names;
use prime_protocol::Role;
use prime_settings::{ApprovalRule, Preset, Run, Settings, SettingsError};

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
        check_overrides(settings, &request.agents)?;

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

    choose_budget(&mut run.budget, &request.budget.or(&preset.budget))?;

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

/// Maps a setting out of range to the field of the request that it came from.
pub(super) fn out_of_range(error: SettingsError) -> RequestError {
    match error {
        SettingsError::OutOfRange { key, found, expected, .. }
        | SettingsError::WrongType { key, found, expected, .. } => {
            let field = key.strip_prefix("run.").unwrap_or(&key).to_owned();
            RequestError::field(field, Reason::OutOfRange { found, expected })
        }
        error => RequestError::Settings(Box::new(error)),
    }
}

/// Checks that the configuration lets a request choose these agents: the configured one of each
/// role, and those of `server.allow_executors` and so on.
///
/// # Errors
/// The first one that it may not choose; its field is `agents.` and the role.
pub fn check_overrides(settings: &Settings, overrides: &Overrides) -> Result<(), RequestError> {
    let configured = configured_names(settings);
    for role in Role::ALL {
        let Some(choice) = overrides.agent(role) else { continue };
        let (option, allowed) = settings.server.allowed(role);
        let is_configured = configured.of(role) == choice;
        if !is_configured && !allowed.iter().any(|name| name == choice) {
            let (agent, allowed) = (choice.to_owned(), allowed.to_vec());
            let reason = Reason::AgentNotAllowed { agent, option, allowed };
            return Err(RequestError::field(format!("agents.{role}"), reason));
        }
    }
    Ok(())
}
