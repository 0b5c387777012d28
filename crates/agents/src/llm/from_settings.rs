//! Builds agents that ask a model from the options of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    CoordinatorOptions, ExecutorOptions, ExecutorPrompts, LlmCoordinator, LlmExecutor, LlmVerifier,
    VerdictFormat, VerifierOptions,
};
use crate::factory::Factory;
use crate::model::Model;
use crate::prompt::{History, Shown, TemplateError, Templates};
use crate::{Coordinator, Executor, Verifier};
use prime_protocol::{Role, Thresholds};
use prime_settings::{
    Agent, BUILT_IN, CoordinatorAgent, Dialect, ExecutorAgent, HistoryName, RoleOptions, Settings,
    UpstreamPool, VerdictName, VerifierAgent, VerifierImplementation,
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

/// Returns whether the answers of an agent's model have the form of a grammar that it asks with, as
/// far as its pool's configuration says. Answers of a server that takes no grammar are free,
/// whatever the agent's options say.
fn applies_grammars<A: RoleOptions>(settings: &Settings, agent: &Agent<A>) -> bool {
    let pool = agent.pool().and_then(|pool| settings.pools.get(pool));
    pool.is_none_or(UpstreamPool::applies_grammars)
}

/// Like [`applies_grammars`], for an open model: servers that were asked what they are know better
/// than a configuration that leaves it to them.
fn model_applies_grammars<A: RoleOptions>(
    settings: &Settings,
    agent: &Agent<A>,
    model: &dyn Model,
) -> bool {
    let pool = agent.pool().and_then(|pool| settings.pools.get(pool));
    if pool.is_some_and(|pool| pool.dialect == Dialect::Auto) {
        model.applies_grammars()
    } else {
        applies_grammars(settings, agent)
    }
}

/// The options of an executor, translated from the configuration.
#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
fn executor_options(
    settings: &Settings,
    name: &str,
    agent: &Agent<ExecutorAgent>,
) -> ExecutorOptions {
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
        grammar: options.grammar && applies_grammars(settings, agent),
        exclude_rejected: options.exclude_rejected,
        derive: options.derive,
        derive_characters: options.derive_characters,
        choices: options.choices,
        thinking: options.thinking,
        shown: Shown {
            examples: options.examples,
            example_tokens: options.example_tokens,
            view: options.view,
            feedback: options.feedback,
            constraints: options.constraints,
        },
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

    let mut options = executor_options(settings, name, agent);
    options.grammar =
        agent.options.grammar && model_applies_grammars(settings, agent, model.as_ref());
    checked(
        move || LlmExecutor::new(Arc::clone(&model), &templates, options.clone()),
        |made| Arc::new(made),
    )
}

/// The prompts of an executor that asks a model.
///
/// # Errors
/// A template is invalid.
pub fn executor_prompts(
    settings: &Settings,
    templates: &Templates,
    name: &str,
    agent: &Agent<ExecutorAgent>,
) -> Result<ExecutorPrompts, TemplateError> {
    ExecutorPrompts::new(templates, &executor_options(settings, name, agent))
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
        _ if agent.implementation == VerifierImplementation::Reward => {
            VerdictFormat::Reward { threshold: options.threshold }
        }
        VerdictName::Rating => {
            VerdictFormat::Rating { best: options.rating_max, threshold: options.threshold }
        }
        VerdictName::Report => {
            let grammar =
                options.grammar && model_applies_grammars(settings, agent, model.as_ref());
            VerdictFormat::Report { grammar, max_tokens: options.max_tokens }
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
        // A reward model has no instructions.
        system: system(Role::Verifier, &options.system)
            .filter(|_| agent.implementation != VerifierImplementation::Reward),
        kinds: options.kinds,
        thinking: options.thinking,
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
        thinking: options.thinking,
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

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use prime_settings::ExecutorImplementation;

    use super::*;
    use crate::Sampling;
    use crate::llm::fake_model::{FakeModel, advanced, started};
    use prime_problems::Custom;
    use prime_protocol::Trajectory;

    const SAMPLING: Sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 0 };

    /// The line that an executor with default options reads in an answer of a pool's server.
    fn line(dialect: Dialect, extra: &str, answer: &'static str, at: &Trajectory) -> String {
        let mut settings = Settings::built_in();
        let pool = UpstreamPool { dialect, extra: extra.to_owned(), ..UpstreamPool::default() };
        settings.pools.insert("gpu".to_owned(), pool);

        let options = ExecutorAgent { pool: "gpu".to_owned(), ..settings.agents.executor.clone() };
        assert!(options.grammar, "by default");
        let agent = Agent { implementation: ExecutorImplementation::Openai, options };

        let model = FakeModel::saying(answer);
        let asked: Arc<dyn Model> = model.clone();
        let made = executor(&settings, "openai", &agent, asked).expect("built-in templates");
        let proposal = block_on(made().propose(at, SAMPLING)).expect("a proposal");
        assert_eq!(model.last().grammar.is_some(), dialect != Dialect::Plain && extra == "{}");
        proposal.line
    }

    #[test]
    fn the_answer_of_a_server_without_grammars_is_free_by_default() {
        let hanoi = advanced("tower-of-hanoi", 0);
        for answer in [
            "move 1 0 2",
            "```\nmove 1 0 2\n```",
            "\u{200b}move 1 0 2",
            "move\u{a0}1\u{a0}0\u{a0}2",
            "move 1 0 2\0",
            "\u{feff}`move 1 0 2`",
        ] {
            assert_eq!(line(Dialect::Plain, "{}", answer, &hanoi), "move 1 0 2", "{answer:?}");
        }

        let definition = serde_json::json!({"statement": "x", "answer": {"schema": true}});
        let problem = Custom::read(&definition).expect("a problem").problem();
        let problem = started(problem.as_ref());
        for answer in
            ["{\"a\": 1}", "```json\n{\"a\": 1}\n```", "`{\"a\": 1}`", "\u{feff}{\"a\": 1}"]
        {
            assert_eq!(line(Dialect::Plain, "{}", answer, &problem), "{\"a\": 1}", "{answer:?}");
        }
    }

    #[test]
    fn only_a_server_that_gets_the_grammar_is_taken_verbatim() {
        let hanoi = advanced("tower-of-hanoi", 0);
        let fenced = "```\nmove 1 0 2\n```";

        for dialect in [Dialect::LlamaServer, Dialect::Vllm, Dialect::Sglang] {
            assert_eq!(line(dialect, "{}", fenced, &hanoi), "```", "{dialect:?}");
        }
        let without = r#"{"grammar": null}"#;
        assert_eq!(line(Dialect::LlamaServer, without, fenced, &hanoi), "move 1 0 2");
    }
}
