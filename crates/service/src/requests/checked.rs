//! A request, checked as far as possible without agents.

use super::chosen_settings::ChosenSettings;
use super::error::{Reason, RequestError};
use super::instance::Instance;
use super::queueing::queueing_of;
use super::run_request::RunRequest;
use crate::app::{BeyondLearnt, Overrides, beyond_learnt, check_learnt, split};
use crate::runs::{Labels, Queueing, check_labels};
use prime_agent_set::task_program::TaskPrograms;
use prime_report::Arm;
use prime_settings::Settings;

/// A request, checked as far as possible without agents.
pub struct CheckedRequest {
    /// The agents that it chooses, or those of its side of a comparison.
    pub overrides: Overrides,
    /// Its side in the comparison of `agents.split`, if it takes part.
    pub split: Option<Arm>,
    /// The settings with its choices and these agents.
    pub settings: Settings,
    /// The problem to solve.
    pub instance: Instance,
    /// The client's labels.
    pub labels: Labels,
    /// When it is to begin and to end.
    pub queueing: Queueing,
    /// True to try a task that the executor's models have not learnt.
    is_forced: bool,
}

impl CheckedRequest {
    /// Checks a request. May compute for milliseconds.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn of(
        settings: &Settings,
        tasks: &TaskPrograms,
        request: &RunRequest,
    ) -> Result<Self, RequestError> {
        check_labels(&request.labels).map_err(|error| RequestError::field("labels", error))?;
        let queueing = queueing_of(request)?;
        // The settings come first because they are cheap: an instance may have to be generated.
        let chosen = ChosenSettings::of(settings, request)?;
        let instance = Instance::of(tasks, request)?;
        Ok(Self::assigned(chosen, instance, request, queueing))
    }

    /// Assigns a request to its side in the comparison, which may choose an agent.
    fn assigned(
        chosen: ChosenSettings,
        instance: Instance,
        request: &RunRequest,
        queueing: Queueing,
    ) -> Self {
        let ChosenSettings { settings, mut overrides } = chosen;
        let split = split::assign(
            &settings.agents.split,
            &mut overrides,
            settings.run.seed,
            &instance.name,
            instance.problem.as_ref(),
        );

        let settings = overrides.apply(&settings);
        let is_forced = request.force.unwrap_or(false);
        let labels = request.labels.clone();
        Self { overrides, split, settings, instance, labels, queueing, is_forced }
    }

    /// The part of the client's own input that is larger than in any instance that the built-in
    /// model has learnt from, if there is one.
    pub fn beyond_learnt(&self) -> Option<BeyondLearnt> {
        if !self.instance.is_own_input() {
            return None;
        }
        beyond_learnt(&self.settings, self.instance.problem.as_ref())
    }

    /// Checks that the executor may know the task, unless the request forces a try.
    ///
    /// # Errors
    /// [`Reason::NotLearnt`], about the field `task`.
    pub fn check_learnt(&self) -> Result<(), RequestError> {
        let problem = &self.instance.problem;
        // No model is trained on a custom problem: the agents say whether they can read it.
        if self.is_forced || !problem.has_reference() {
            return Ok(());
        }
        check_learnt(&self.settings, problem.spec())
            .map_err(|error| RequestError::field("task", Reason::NotLearnt(error)))
    }
}
