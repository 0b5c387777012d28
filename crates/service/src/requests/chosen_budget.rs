//! The budget that a request chooses, within what the configuration allows.

use super::chosen_settings::out_of_range;
use super::error::{Reason, RequestError};
use super::run_request::BudgetRequest;
use prime_protocol::Cost;
use prime_settings::{Budget, PresetBudget, Settings};

/// Largest budget of money that a configuration may have.
const COST_MAX: f64 = 1e9;

impl BudgetRequest {
    /// The limits of a request, and those of its preset that it does not name.
    pub(super) fn or(&self, preset: &PresetBudget) -> Self {
        Self {
            steps: self.steps.or(preset.steps),
            tokens: self.tokens.or(preset.tokens),
            completion_tokens: self.completion_tokens.or(preset.completion_tokens),
            cost: self.cost.or(preset.cost),
            wall_ms: self.wall_ms.or(preset.wall_ms),
        }
    }
}

/// Applies a request's choices to the configured budget, which is both the default and the limit of
/// what a request may ask for.
///
/// # Errors
/// The first field that is above its limit, or 0.
pub(super) fn choose_budget(
    configured: &mut Budget,
    choice: &BudgetRequest,
) -> Result<(), RequestError> {
    let Budget { steps, tokens, completion_tokens, cost, wall_ms } = configured;
    for (field, choice, value) in [
        ("budget.steps", choice.steps, steps),
        ("budget.tokens", choice.tokens, tokens),
        ("budget.completion_tokens", choice.completion_tokens, completion_tokens),
        ("budget.wall_ms", choice.wall_ms, wall_ms),
    ] {
        let Some(choice) = choice else { continue };
        // A configured limit of 0 means none.
        let limit = *value;
        if choice == 0 || (limit > 0 && choice > limit) {
            return Err(RequestError::field(field, Reason::OverLimit { given: choice, limit }));
        }
        *value = choice;
    }

    if let Some(choice) = choice.cost {
        *cost = within(choice, *cost)?;
    }
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

/// Limits that replace those of a run, checked against the configuration.
#[derive(Clone, Debug, Default)]
pub struct ChosenBudget {
    chosen: BudgetRequest,
    cost: Option<Cost>,
}

impl ChosenBudget {
    /// Checks the limits that a request names.
    ///
    /// # Errors
    /// As for a new run: the first field that is above what the daemon allows, or out of range.
    pub fn of(settings: &Settings, chosen: BudgetRequest) -> Result<Self, RequestError> {
        let mut settings = settings.clone();
        choose_budget(&mut settings.run.budget, &chosen)?;
        settings.validate().map_err(out_of_range)?;

        let cost = |cost| Cost::from_units(cost).expect("invariant: settings are validated");
        Ok(Self { cost: chosen.cost.map(cost), chosen })
    }

    /// Replaces the limits of a run's budget that were chosen; the others stay.
    pub fn apply(&self, budget: &mut prime_protocol::Budget) {
        let BudgetRequest { steps, tokens, completion_tokens, wall_ms, .. } = self.chosen;
        budget.steps = steps.unwrap_or(budget.steps);
        budget.tokens = tokens.unwrap_or(budget.tokens);
        budget.completion_tokens = completion_tokens.unwrap_or(budget.completion_tokens);
        budget.cost = self.cost.unwrap_or(budget.cost);
        budget.wall_ms = wall_ms.unwrap_or(budget.wall_ms);
    }
}
