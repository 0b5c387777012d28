//! Builds agents that ask a model from the options of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    CoordinatorOptions, ExecutorOptions, ExecutorPrompts, LlmCoordinator, LlmExecutor, LlmVerifier,
    VerdictFormat, VerifierOptions,
};
use crate::factory::Factory;
use crate::model::Model;
use crate::prompt::{History, TemplateError, Templates};
use crate::{Coordinator, Executor, Verifier};
use prime_protocol::{Role, Thresholds};
use prime_settings::{
    Agent, BUILT_IN, CoordinatorAgent, ExecutorAgent, HistoryName, RoleOptions, Settings,
    VerdictName, VerifierAgent,
};

/// Default for `confidence_min` of `likelihood`.
const CONFIDENCE_MIN: f32 = 0.05;

fn history(name: HistoryName, steps: u32) -> History {
    match name {
        HistoryName::None => History::None,
        HistoryName::Window => History::Window(steps as usize),
        HistoryName::Full => History::Full,
    }
}

/// The key of a template in [`Templates`].
fn template(role: Role, name: &str) -> String {
    format!("{role}/{name}.j2")
}

fn system(role: Role, name: &str) -> Option<String> {
    (!name.is_empty()).then(|| template(role, name))
}

/// The built-in templates and those of the settings.
///
/// # Errors
/// The first invalid template, with the line.
pub fn templates(settings: &Settings) -> Result<Templates, TemplateError> {
    let texts = &settings.definitions.templates;
    Templates::with(texts.iter().map(|(name, template)| (name.clone(), template.text.clone())))
}

/// The templates of the settings, after rendering the agent's own ones for every task, so that an
/// error shows before a run. A test covers the built-in ones.
fn checked_templates<A: RoleOptions>(
    settings: &Settings,
    agent: &Agent<A>,
) -> Result<Templates, TemplateError> {
    let all = templates(settings)?;
    let known = &settings.definitions.templates;

    let is_built_in =
        |name: &String| known.get(name).is_some_and(|template| template.origin == BUILT_IN);

    for name in agent.templates().iter().filter(|name| !is_built_in(name)) {
        all.check(name, A::ROLE, &BTreeMap::new(), &[])?;
    }
    Ok(all)
}

/// A factory, after building one agent to show that it can be built.
fn checked<T: 'static, A: ?Sized + 'static>(
    make: impl Fn() -> Result<T, TemplateError> + Send + Sync + 'static,
    share: fn(T) -> Arc<A>,
) -> Result<Factory<A>, TemplateError> {
    // Templates are checked now, so that an actor's start cannot fail.
    make()?;
    Ok(Arc::new(move || share(make().expect("invariant: the first one could be built"))))
}

/// An executor's options in its own terms.
#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
fn executor_options(name: &str, agent: &Agent<ExecutorAgent>) -> ExecutorOptions {
    let options = &agent.options;
    ExecutorOptions {
        name: name.to_owned(),
        template: template(Role::Executor, agent.prompt_name()),
        variants: options
            .prompt_variants
            .iter()
            .map(|name| template(Role::Executor, name))
            .collect(),
        system: system(Role::Executor, &options.system),
        history: history(options.history, options.history_steps),
        grammar: options.grammar,
        exclude_rejected: options.exclude_rejected,
        derive_after_rejection: options.derive_after_rejection,
        max_tokens: options.max_tokens,
        temperature: options.temperature.map(|value| value as f32),
        top_p: options.top_p.map(|value| value as f32),
        variables: BTreeMap::new(),
    }
}

/// An executor that asks a model.
///
/// # Errors
/// A template is invalid.
pub fn executor(
    settings: &Settings,
    name: &str,
    agent: &Agent<ExecutorAgent>,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Executor>, TemplateError> {
    let templates = checked_templates(settings, agent)?;

    let options = executor_options(name, agent);
    checked(
        move || LlmExecutor::new(Arc::clone(&model), &templates, options.clone()),
        |made| Arc::new(made),
    )
}

/// What such an executor asks its model.
///
/// # Errors
/// A template is invalid.
pub fn executor_prompts(
    templates: &Templates,
    name: &str,
    agent: &Agent<ExecutorAgent>,
) -> Result<ExecutorPrompts, TemplateError> {
    ExecutorPrompts::new(templates, &executor_options(name, agent))
}

/// A verifier that asks a model.
///
/// # Errors
/// A template is invalid.
#[expect(clippy::cast_possible_truncation, reason = "log-probabilities have single precision")]
pub fn verifier(
    settings: &Settings,
    name: &str,
    agent: &Agent<VerifierAgent>,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Verifier>, TemplateError> {
    let options = &agent.options;
    let format = match options.verdict {
        VerdictName::Report => {
            VerdictFormat::Report { grammar: options.grammar, max_tokens: options.max_tokens }
        }
        VerdictName::Likelihood => {
            let confidence_min = if options.confidence_min > 0.0 {
                options.confidence_min as f32
            } else {
                CONFIDENCE_MIN
            };
            VerdictFormat::Likelihood { confidence_min, max_tokens: options.max_tokens }
        }
        VerdictName::Token => {
            let confidence_min = options.confidence_min as f32;
            VerdictFormat::Token {
                confidence_min: (confidence_min > 0.0).then_some(confidence_min),
            }
        }
    };

    let templates = checked_templates(settings, agent)?;

    let options = VerifierOptions {
        name: name.to_owned(),
        format,
        template: template(Role::Verifier, agent.prompt_name()),
        system: system(Role::Verifier, &options.system),
        kinds: options.kinds,
        history: history(options.history, options.history_steps),
        // The same step must get the same verdict.
        temperature: 0.0,
        variables: BTreeMap::new(),
    };

    checked(
        move || LlmVerifier::new(Arc::clone(&model), &templates, options.clone()),
        |made| Arc::new(made),
    )
}

/// A coordinator that asks a model.
///
/// # Errors
/// A template is invalid.
pub fn coordinator(
    settings: &Settings,
    name: &str,
    agent: &Agent<CoordinatorAgent>,
    thresholds: Thresholds,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Coordinator>, TemplateError> {
    let options = &agent.options;
    let templates = checked_templates(settings, agent)?;

    let options = CoordinatorOptions {
        name: name.to_owned(),
        template: template(Role::Coordinator, &options.prompt),
        system: system(Role::Coordinator, &options.system),
        thresholds,
        history: history(options.history, options.history_steps),
        ask_on_clean_steps: options.ask_on_clean_steps,
        temperature: 0.0,
        variables: BTreeMap::new(),
    };

    checked(
        move || LlmCoordinator::new(Arc::clone(&model), &templates, options.clone()),
        |made| Arc::new(made),
    )
}
