//! Agents that ask a model, made from the options of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CoordinatorOptions, ExecutorOptions, LlmCoordinator, LlmExecutor, LlmVerifier, Mode, VerifierOptions};
use crate::agents::model::Model;
use crate::agents::prompt::{History, TemplateError, Templates};
use crate::agents::registry::Factory;
use crate::agents::{Coordinator, Executor, Verifier};
use crate::settings::{
    BUILT_IN, CoordinatorAgent, ExecutorAgent, HistoryName, RoleOptions, Settings, VerdictName, VerifierAgent,
};
use prime_protocol::{Role, Thresholds};

/// Probability below which a token makes a step wrong, where no other is given.
const LEAST: f32 = 0.05;

/// How many of the committed steps a prompt shows.
fn history(name: HistoryName, steps: u32) -> History {
    match name {
        HistoryName::None => History::None,
        HistoryName::Window => History::Window(steps as usize),
        HistoryName::Full => History::Full,
    }
}

/// The name of a template as the set of templates knows it.
fn template(role: Role, name: &str) -> String {
    format!("{role}/{name}.j2")
}

fn system(role: Role, name: &str) -> Option<String> {
    (!name.is_empty()).then(|| template(role, name))
}

/// The built-in templates and those of the settings.
///
/// # Errors
/// The first text that is no template, with the line.
pub fn templates(settings: &Settings) -> Result<Templates, TemplateError> {
    let texts = &settings.definitions.templates;
    Templates::with(texts.iter().map(|(name, template)| (name.clone(), template.text.clone())))
}

/// The templates of the settings, once those that an agent asks with have been tried on every task: what a template lacks
/// is found before a run does. Built-in ones have been tried by a test.
fn tried<A: RoleOptions>(settings: &Settings, options: &A) -> Result<Templates, TemplateError> {
    let all = templates(settings)?;
    let known = &settings.definitions.templates;
    let is_built_in = |name: &String| known.get(name).is_some_and(|template| template.origin == BUILT_IN);
    for name in options.templates().iter().filter(|name| !is_built_in(name)) {
        all.check(name, A::ROLE, &BTreeMap::new(), &[])?;
    }
    Ok(all)
}

/// A factory of something that can be made, as a first one shows.
fn checked<T: 'static, A: ?Sized + 'static>(
    make: impl Fn() -> Result<T, TemplateError> + Send + Sync + 'static,
    share: fn(T) -> Arc<A>,
) -> Result<Factory<A>, TemplateError> {
    make()?;
    Ok(Arc::new(move || share(make().expect("invariant: it could be made before"))))
}

/// An executor that asks a model.
///
/// # Errors
/// When a template is wrong.
#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
pub fn executor(
    settings: &Settings,
    name: &str,
    options: &ExecutorAgent,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Executor>, TemplateError> {
    let templates = tried(settings, options)?;
    let options = ExecutorOptions {
        name: name.to_owned(),
        template: template(Role::Executor, &options.prompt),
        system: system(Role::Executor, &options.system),
        history: history(options.history, options.history_steps),
        grammar: options.grammar,
        max_tokens: options.max_tokens,
        temperature: options.temperature.map(|value| value as f32),
        top_p: options.top_p.map(|value| value as f32),
        variables: BTreeMap::new(),
    };
    checked(move || LlmExecutor::new(Arc::clone(&model), &templates, options.clone()), |made| Arc::new(made))
}

/// A verifier that asks a model.
///
/// # Errors
/// When a template is wrong.
#[expect(clippy::cast_possible_truncation, reason = "log-probabilities have single precision")]
pub fn verifier(
    settings: &Settings,
    name: &str,
    options: &VerifierAgent,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Verifier>, TemplateError> {
    let mode = match options.verdict {
        VerdictName::Report => Mode::Report { grammar: options.grammar, max_tokens: options.max_tokens },
        VerdictName::Likelihood => {
            let least = if options.confidence_min > 0.0 { options.confidence_min as f32 } else { LEAST };
            Mode::Likelihood { least, max_tokens: options.max_tokens }
        }
        VerdictName::Token => {
            let least = options.confidence_min as f32;
            Mode::Token { confidence_min: (least > 0.0).then_some(least) }
        }
    };
    let templates = tried(settings, options)?;
    let options = VerifierOptions {
        name: name.to_owned(),
        mode,
        template: template(Role::Verifier, options.prompt_name()),
        system: system(Role::Verifier, &options.system),
        kinds: options.kinds.iter().copied().collect(),
        history: history(options.history, options.history_steps),
        temperature: 0.0,
        variables: BTreeMap::new(),
    };
    checked(move || LlmVerifier::new(Arc::clone(&model), &templates, options.clone()), |made| Arc::new(made))
}

/// A coordinator that asks a model.
///
/// # Errors
/// When a template is wrong.
pub fn coordinator(
    settings: &Settings,
    name: &str,
    options: &CoordinatorAgent,
    thresholds: Thresholds,
    model: Arc<dyn Model>,
) -> Result<Factory<dyn Coordinator>, TemplateError> {
    let templates = tried(settings, options)?;
    let options = CoordinatorOptions {
        name: name.to_owned(),
        template: template(Role::Coordinator, &options.prompt),
        system: system(Role::Coordinator, &options.system),
        thresholds,
        history: history(options.history, options.history_steps),
        asks_when_clean: options.asks_when_clean,
        temperature: 0.0,
        variables: BTreeMap::new(),
    };
    checked(move || LlmCoordinator::new(Arc::clone(&model), &templates, options.clone()), |made| Arc::new(made))
}
