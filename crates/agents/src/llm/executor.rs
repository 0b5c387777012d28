//! An executor that is a language model: it sees the turn and writes an action line.

use std::sync::Arc;

use async_trait::async_trait;
use dashmap::DashMap;

use super::affinity;
use super::avoided_prefixes::avoided_prefixes;
use super::executor_options::{COMPACT, ExecutorOptions};
use super::executor_prompts::{Asked, ExecutorPrompts};
use super::read_completion::ReadCompletion;
use crate::model::{Completion, CompletionRequest, Model};
use crate::prompt::{self, TemplateError, Templates};
use crate::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_bench::output::line::action_line;
use prime_bench::tasks::pattern;
use prime_bench::tasks::spec::Spec;
use prime_protocol::Trajectory;

/// Proposes steps with a model.
pub struct LlmExecutor {
    model: Arc<dyn Model>,
    prompts: ExecutorPrompts,
    options: ExecutorOptions,
    /// Grammars by task and by whether a free line may come first. Engines cache them by their
    /// text.
    grammars: DashMap<(&'static str, bool), TaskGrammar>,
}

#[derive(Clone)]
struct TaskGrammar {
    text: Arc<str>,
    /// Maximum values that a derivation under it looks up.
    reads_max: usize,
}

impl TaskGrammar {
    fn new(spec: &Spec, may_derive: bool) -> Self {
        let reads_max = if may_derive { prime_lessons::reads_max(spec.slug) } else { 0 };
        Self { text: prompt::grammar(spec, may_derive).into(), reads_max }
    }
}

impl LlmExecutor {
    /// # Errors
    /// A template does not exist or uses a variable that executors do not have.
    pub fn new(
        model: Arc<dyn Model>,
        templates: &Templates,
        options: ExecutorOptions,
    ) -> Result<Self, TemplateError> {
        let prompts = ExecutorPrompts::new(templates, &options)?;
        Ok(Self { model, prompts, options, grammars: DashMap::new() })
    }

    pub(super) async fn complete(
        &self,
        request: CompletionRequest,
    ) -> Result<Completion, AgentError> {
        self.model
            .complete(request)
            .await
            .map_err(|error| AgentError { agent: self.prompts.agent().to_owned(), ..error })
    }

    /// A completion that avoids the lines rejected at this state and, as far as possible, what
    /// resembles them.
    async fn complete_under_grammar(
        &self,
        request: CompletionRequest,
        template: &str,
        trajectory: &Trajectory,
    ) -> Result<ReadCompletion, AgentError> {
        let (machine, top) = (trajectory.machine.as_ref(), trajectory.stack.top());
        let spec = machine.spec();

        let may_derive = self.options.derive_after_rejection || top.avoided().next().is_none();
        let grammar = self.grammars.entry((spec.slug, may_derive));
        let TaskGrammar { text, reads_max } =
            grammar.or_insert_with(|| TaskGrammar::new(spec, may_derive)).clone();

        let reads_max = if template == COMPACT { reads_max } else { 0 };
        let request = CompletionRequest { grammar: Some(text), ..request };

        if !self.options.exclude_rejected {
            return self.complete_reading(request, machine, reads_max).await;
        }

        let request =
            CompletionRequest { excluded: top.avoided().map(Into::into).collect(), ..request };

        if let Some(left) = listed_choices(trajectory) {
            let grammar = prompt::grammar_of_lines(left.iter().map(String::as_str), may_derive);
            let request = CompletionRequest { grammar: Some(grammar.into()), ..request };
            return self.complete(request).await.map(Into::into);
        }

        let excluded_prefixes = avoided_prefixes(spec.actions, top.avoided());
        if excluded_prefixes.is_empty() {
            return self.complete_reading(request, machine, reads_max).await;
        }

        let avoiding = CompletionRequest { excluded_prefixes, ..request.clone() };
        let read = self.complete_reading(avoiding, machine, reads_max).await?;
        if !read.completion.is_exhausted {
            return Ok(read);
        }

        // Nothing is left beside what resembles the rejected lines: ask again without the prefixes,
        // for the tokens that are left. Both answers are paid for.
        let Completion { usage: spent, .. } = read.completion;
        let used = u32::try_from(spent.completion).unwrap_or(u32::MAX);
        let max_tokens = request.max_tokens.saturating_sub(used).max(1);
        let request = CompletionRequest { max_tokens, ..request };

        let mut read = self.complete_reading(request, machine, reads_max).await?;
        read.completion.usage.add(spent);
        Ok(read)
    }
}

/// Number of rejected lines that are not valid choices, after which the grammar lists the choices
/// that are left.
const NO_CHOICES_MAX: usize = 2;

/// The choices left at a state where they are finite and the model has missed them repeatedly. A
/// task's grammar also permits endlessly many lines that cannot be applied, and a model that knows
/// no others would propose such lines until it is stuck.
fn listed_choices(trajectory: &Trajectory) -> Option<Vec<String>> {
    let top = trajectory.stack.top();
    // Cheaper than computing the choices, and enough to say no at most states.
    top.avoided().nth(NO_CHOICES_MAX - 1)?;

    let choices = trajectory.machine.choices()?;
    let missed = top.avoided().filter(|line| choices.iter().all(|choice| choice != line)).count();

    let is_left = |choice: &String| top.avoided().all(|line| line != choice);
    let left: Vec<_> = choices.into_iter().filter(is_left).collect();
    (missed >= NO_CHOICES_MAX && !left.is_empty()).then_some(left)
}

/// How much each repetition of a rejected line raises the temperature, and up to what.
const TEMPERATURE_STEP: f32 = 0.2;
const TEMPERATURE_RAISED_MAX: f32 = 1.0;

/// The temperature of the next proposal at a state. Where no grammar excludes the rejected lines, a
/// greedy model would write the same one forever.
fn raised(temperature: f32, trajectory: &Trajectory) -> f32 {
    let top = trajectory.stack.top();
    let repetitions =
        if top.excluded.is_empty() { 0 } else { top.repetitions().saturating_sub(top.retries) };

    // More repetitions than these change nothing.
    let steps = u8::try_from(repetitions).unwrap_or(u8::MAX);
    temperature.max((temperature + TEMPERATURE_STEP * f32::from(steps)).min(TEMPERATURE_RAISED_MAX))
}

#[async_trait]
impl AsyncExecutor for LlmExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let options = &self.options;

        let Asked { system, prompt } = self.prompts.of(trajectory)?;
        let request = CompletionRequest {
            system,
            sampling: Sampling {
                temperature: raised(
                    options.temperature.unwrap_or(sampling.temperature),
                    trajectory,
                ),
                top_p: options.top_p.unwrap_or(sampling.top_p),
                seed: sampling.seed,
            },
            max_tokens: trajectory
                .completion_max
                .map_or(options.max_tokens, |max| max.min(options.max_tokens)),
            logprobs: true,
            affinity: affinity(trajectory),
            ..CompletionRequest::raw(trajectory.machine.spec().slug, prompt)
        };

        let ReadCompletion { completion, failed } = if options.grammar {
            self.complete_under_grammar(request, self.prompts.template(trajectory), trajectory)
                .await?
        } else {
            self.complete(request).await?.into()
        };

        if completion.is_exhausted {
            let Completion { usage, source, .. } = completion;
            return Ok(Proposal { usage, source, is_exhausted: true, ..Proposal::default() });
        }

        let cut_off = completion.is_truncated.then(|| {
            format!(
                "cut off after {} tokens of completion: max_tokens of the executor, or the context \
                 of its model or engine",
                completion.usage.completion
            )
        });

        // After a query without an answer, the query itself is the line that is judged.
        let line = if failed.is_some() {
            completion.text.rsplit([' ', '\n']).next().unwrap_or_default()
        } else if options.grammar {
            prime_lessons::action_line(&completion.text)
        } else {
            prompt::last_line(&completion.text)
        };

        // The line of a free answer may be in backquotes.
        let before = completion.text.rfind(line).map_or("", |at| &completion.text[..at]);
        // A free line has the form that the judge gives it. Under a grammar it is taken verbatim.
        let forms = trajectory.machine.spec().actions;
        let said = if options.grammar {
            line.into()
        } else {
            action_line(line, |line| pattern::parse(forms, line).is_some()).0
        };
        let derivation = before.trim_end_matches('`').trim_end().to_owned();

        Ok(Proposal {
            line: said.into_owned(),
            derivation: if line.is_empty() {
                completion.text.trim_end().to_owned()
            } else {
                derivation
            },
            usage: completion.usage,
            tokens: completion.tokens,
            logprobs: completion.logprobs,
            source: completion.source,
            is_exhausted: false,
            unfinished: failed.map(|failed| failed.to_string()).or(cut_off).map(Into::into),
        })
    }
}

#[cfg(test)]
mod tests;
