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
use crate::prompt::{self, CUT_OFF, FreeLine, TemplateError, Templates};
use crate::thought::kept;
use crate::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_bench::output::line::action_line;
use prime_bench::tasks::Machine;
use prime_bench::tasks::pattern::{self, Bounds};
use prime_bench::tasks::spec::Spec;
use prime_protocol::Trajectory;
use prime_settings::{ChoicesName, DeriveName, Thinking};

/// Proposes steps with a model.
pub struct LlmExecutor {
    model: Arc<dyn Model>,
    prompts: ExecutorPrompts,
    options: ExecutorOptions,
    /// Grammars by task, by the free line that may come first, and by bounds. Engines cache them by
    /// their text.
    grammars: DashMap<(TaskKey, FreeLine, Option<Bounds>), TaskGrammar>,
    /// Forms of action lines by task.
    line_forms: DashMap<TaskKey, Arc<str>>,
}

/// A task as it is declared: a program may declare another one under the same name after a reload,
/// and what is declared is never freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct TaskKey(usize);

impl TaskKey {
    fn of(spec: &'static Spec) -> Self {
        Self(std::ptr::from_ref(spec).addr())
    }
}

#[derive(Clone)]
struct TaskGrammar {
    text: Arc<str>,
    /// Maximum values that a derivation under it looks up.
    reads_max: usize,
}

impl TaskGrammar {
    fn new(spec: &Spec, free: FreeLine, bounds: Option<Bounds>) -> Self {
        let may_derive = free != FreeLine::Forbidden;
        let reads_max = if may_derive { prime_lessons::reads_max(spec.slug) } else { 0 };
        Self { text: prompt::grammar(spec, free, bounds).into(), reads_max }
    }
}

impl LlmExecutor {
    /// An executor that asks this model.
    ///
    /// # Errors
    /// A template does not exist or uses a variable that executors do not have.
    pub fn new(
        model: Arc<dyn Model>,
        templates: &Templates,
        options: ExecutorOptions,
    ) -> Result<Self, TemplateError> {
        let prompts = ExecutorPrompts::new(templates, &options)?;
        Ok(Self { model, prompts, options, grammars: DashMap::new(), line_forms: DashMap::new() })
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

    /// The form of a task's lines, as a pattern of JSON Schema; none for a client's problem, whose
    /// line may be JSON itself.
    fn line_form(&self, trajectory: &Trajectory) -> Option<Arc<str>> {
        let spec = trajectory.machine.spec();
        if !trajectory.machine.problem().has_reference() || spec.actions.is_empty() {
            return None;
        }
        let form = self.line_forms.entry(TaskKey::of(spec)).or_insert_with(|| {
            // Servers know no groups that capture nothing.
            format!("^{}$", pattern::regex(spec.actions).replace("(?:", "(")).into()
        });
        Some(Arc::clone(&form))
    }

    /// Returns whether a proposal may begin with a free line, and how long it may be.
    fn free_line(&self, trajectory: &Trajectory) -> FreeLine {
        let is_allowed = match self.options.derive {
            DeriveName::Always => true,
            DeriveName::Once => trajectory.stack.top().avoided().next().is_none(),
            DeriveName::Never => false,
        };
        match (is_allowed, self.options.derive_characters) {
            (false, _) => FreeLine::Forbidden,
            (true, 0) => FreeLine::Allowed,
            (true, characters) => FreeLine::AtMost(characters),
        }
    }

    /// A completion that is one of these choices.
    async fn complete_choosing(
        &self,
        request: CompletionRequest,
        choices: &[String],
        free: FreeLine,
    ) -> Result<ReadCompletion, AgentError> {
        let grammar = prompt::grammar_of_lines(choices.iter().map(String::as_str), free);
        let request = CompletionRequest { grammar: Some(grammar.into()), ..request };
        self.complete(request).await.map(Into::into)
    }

    /// A completion that avoids the lines rejected at this state and, as far as possible, similar
    /// ones.
    async fn complete_under_grammar(
        &self,
        request: CompletionRequest,
        template: &str,
        trajectory: &Trajectory,
    ) -> Result<ReadCompletion, AgentError> {
        let (machine, top) = (trajectory.machine.as_ref(), trajectory.stack.top());
        let spec = machine.spec();

        // The built-in models end their lines themselves, and were trained without bounds.
        let is_own = template == COMPACT;
        let free = self.free_line(trajectory);
        let bounds = if is_own { None } else { Some(bounds(machine)) };
        let grammar = self.grammars.entry((TaskKey::of(spec), free, bounds));
        let TaskGrammar { text, reads_max } =
            grammar.or_insert_with(|| TaskGrammar::new(spec, free, bounds)).clone();

        let reads_max = if is_own { reads_max } else { 0 };
        let request = CompletionRequest { grammar: Some(text), newline_ends: !is_own, ..request };

        // The forms of a program's task may say little; its choices are exact.
        let lists_choices =
            self.options.choices == ChoicesName::Always || machine.problem().is_asked();
        if lists_choices && let Some(left) = choices_left(trajectory) {
            return self.complete_choosing(request, &left, free).await;
        }
        if !self.options.exclude_rejected {
            return self.complete_reading(request, machine, reads_max).await;
        }

        let request =
            CompletionRequest { excluded: top.avoided().map(Into::into).collect(), ..request };

        if self.options.choices != ChoicesName::Never
            && let Some(left) = listed_choices(trajectory)
        {
            return self.complete_choosing(request, &left, free).await;
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

        // Only lines similar to the rejected ones are left: ask again without the prefixes, within
        // the remaining tokens. Both answers count as spent.
        let Completion { usage: spent, .. } = read.completion;
        let answered = spent.completion.saturating_sub(spent.reasoning);
        let used = u32::try_from(answered).unwrap_or(u32::MAX);
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

/// Maximum bytes of the choices that a grammar lists.
const CHOICES_BYTES_MAX: usize = 64 << 10;

/// The state's choices without the lines that were rejected there; `None` if none are left or they
/// are too long to be listed.
fn choices_left(trajectory: &Trajectory) -> Option<Vec<String>> {
    let top = trajectory.stack.top();
    let is_left = |choice: &String| top.avoided().all(|line| line != choice);
    let left: Vec<_> = trajectory.machine.choices()?.into_iter().filter(is_left).collect();
    let bytes: usize = left.iter().map(String::len).sum();
    (!left.is_empty() && bytes <= CHOICES_BYTES_MAX).then_some(left)
}

/// The bounds of the numbers that a step from the machine's state can name.
fn bounds(machine: &dyn Machine) -> Bounds {
    let input = machine.problem().input().to_string();
    let mut state = Vec::new();
    machine.write_state(&mut state);
    Bounds::of([input.as_bytes(), &state])
}

/// The choices left at a state, if they are finite and the model has missed them repeatedly. A
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

/// Maximum number of lines of a free answer that are tried, from its end.
const LINES_TRIED_MAX: usize = 200;

/// The last line of a free answer that is an action, whatever is around or after it; the last line
/// if none is.
fn last_action_or_line<'a>(answer: &'a str, forms: &[&str]) -> &'a str {
    let is_action = |line: &&str| action_line(line, |line| pattern::parse(forms, line).is_some()).1;
    let mut tried = prompt::lines_from_the_end(answer).take(LINES_TRIED_MAX);
    tried.find(is_action).unwrap_or_else(|| prompt::last_line(answer))
}

/// By how much each repetition of a rejected line raises the temperature, and the limit of that.
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

/// Maximum tokens of an answer and of the thinking before it, out of the tokens that the run has
/// left for the turn. The answer has priority.
fn shared(options: &ExecutorOptions, left: Option<u32>) -> (u32, Thinking) {
    let Some(left) = left else { return (options.max_tokens, options.thinking) };
    let answer = options.max_tokens.min(left);
    let thinking = match (options.thinking, left - answer) {
        (Thinking::AtMost(_), 0) => Thinking::Off,
        (Thinking::AtMost(tokens), spare) => Thinking::AtMost(tokens.min(spare)),
        (other, _) => other,
    };
    (answer, thinking)
}

#[async_trait]
impl AsyncExecutor for LlmExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let options = &self.options;

        let (max_tokens, thinking) = shared(options, trajectory.completion_max);
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
            thinking,
            line_form: if options.grammar { None } else { self.line_form(trajectory) },
            max_tokens,
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
            let Completion { usage, source, reasoning, .. } = completion;
            let reasoning = kept(reasoning);
            return Ok(Proposal {
                usage,
                source,
                reasoning,
                is_exhausted: true,
                ..Proposal::default()
            });
        }

        let cut_off = completion.is_truncated.then(|| {
            format!(
                "{CUT_OFF}{} tokens of completion: max_tokens of the executor, or the context \
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
            last_action_or_line(&completion.text, trajectory.machine.spec().actions)
        };

        let reasoning = kept(completion.reasoning);
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
            reasoning,
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
mod foreign_tests;
#[cfg(test)]
mod tests;
