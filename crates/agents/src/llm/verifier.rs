//! A verifier that is a language model: it sees the step and says what is wrong with it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dashmap::DashMap;

use super::rating::{NoRating, expected_rating};
use super::report::{Report, parse_report, report_grammar};
use super::{affinity, label, malformed, rendered, seed};
use crate::model::{Completion, CompletionRequest, Model};
use crate::prompt::{self, History, Prompt, PromptContext, TemplateError, Templates};
use crate::{AgentError, AsyncVerifier, Basis, Failure, Method, Sampling};
use prime_bench::output::line::action_line;
use prime_bench::tasks::{CheckedKinds, Kind, Kinds, Problem, Rule, Spec};
use prime_protocol::{Role, Score, Trajectory, Verdict};
use prime_settings::Thinking;

/// V of a step that the model calls wrong, and of one that it calls right with too low a
/// probability.
const WRONG: Score = Score::from_tenths(10);
const UNSURE: Score = Score::from_tenths(2);

/// How a model expresses its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VerdictFormat {
    /// The paper's report: PASS or FAIL with a reason for each constraint, an overall verdict, and
    /// a score.
    Report {
        /// True if a grammar constrains the report.
        grammar: bool,
        /// Maximum tokens of a report.
        max_tokens: u32,
    },
    /// The model is prompted like an executor and writes one free line; a grammar then constrains
    /// it to the proposed line, which counts as wrong if it is improbable. For models trained as
    /// executors, which need no further training to judge. A server without grammars answers
    /// freely; then its own line must equal the proposed one.
    Likelihood {
        /// A token with a lower probability (0 to 1) makes the step wrong.
        confidence_min: f32,
        /// Maximum tokens of a completion.
        max_tokens: u32,
    },
    /// One token, `1` for a right step and `0` for a wrong one, constrained by a grammar; its
    /// log-probability is recorded.
    Token {
        /// A `1` with a lower probability (0 to 1) counts as a minor violation.
        confidence_min: Option<f32>,
    },
    /// One digit from 0 to `best`, constrained by a grammar. Its expected value over the model's
    /// probabilities, divided by `best`, counts as wrong below `threshold`.
    Rating {
        /// 1 to 9.
        best: u32,
        /// 0 to 1.
        threshold: f64,
    },
    /// A reward model scores the line after the prompt; a score below `threshold` is wrong.
    Reward {
        /// Minimum score of a right step, in the reward model's own units.
        threshold: f64,
    },
}

/// Number of alternatives to ask for, so that every rating can be among them: the maximum of
/// OpenAI's API.
const ALTERNATIVES: u32 = 20;

/// The grammar of an optional free line followed by this line.
fn ending_in(line: &str) -> String {
    let literal: String = line
        .chars()
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("root ::= ([^\\n]* \"\\n\")? \"{literal}\"")
}

/// The options of a verifier that asks a model.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifierOptions {
    /// Its name in the configuration and in messages.
    pub name: String,
    /// How the model expresses its verdict.
    pub format: VerdictFormat,
    /// The name of the prompt template.
    pub template: String,
    /// The name of the system prompt's template.
    pub system: Option<String>,
    /// The kinds of constraints that the model is asked about, except `format`, which the machine
    /// always checks.
    pub kinds: CheckedKinds,
    /// How much the model may think before its verdict.
    pub thinking: Thinking,
    /// Which of the committed steps its prompts include.
    pub history: History,
    /// 0 is greedy.
    pub temperature: f32,
    /// User-defined template variables.
    pub variables: BTreeMap<String, String>,
}

impl VerifierOptions {
    fn of(name: impl Into<String>, format: VerdictFormat, template: &str) -> Self {
        Self {
            name: name.into(),
            format,
            template: template.to_owned(),
            system: None,
            kinds: CheckedKinds::These(Kinds::ALL),
            thinking: Thinking::AsModel,
            history: History::None,
            temperature: 0.0,
            variables: BTreeMap::new(),
        }
    }

    /// The paper's prompt and report, with its grammar.
    pub fn report(name: impl Into<String>, max_tokens: u32) -> Self {
        Self::of(name, VerdictFormat::Report { grammar: true, max_tokens }, "verifier/check.j2")
    }

    /// The executor's prompt, with the proposed line as the completion.
    pub fn likelihood(name: impl Into<String>, confidence_min: f32, max_tokens: u32) -> Self {
        Self::of(
            name,
            VerdictFormat::Likelihood { confidence_min, max_tokens },
            "verifier/likelihood.j2",
        )
    }

    /// One token, for small models trained on this format.
    pub fn token(name: impl Into<String>, confidence_min: Option<f32>) -> Self {
        Self::of(name, VerdictFormat::Token { confidence_min }, "verifier/token.j2")
    }
}

/// Judges a step with a model.
///
/// Lines that the machine rejects, and constraints of a client's problem that have a `check`, are
/// decided without the model, which is then asked only about constraints in natural language.
pub struct LlmVerifier {
    model: Arc<dyn Model>,
    prompt: Prompt,
    system: Option<Prompt>,
    options: VerifierOptions,
    agent: String,
    /// Grammars of reports, by the number of constraints.
    grammars: DashMap<usize, Arc<str>>,
    token: Arc<str>,
}

impl LlmVerifier {
    /// A verifier that asks this model.
    ///
    /// # Errors
    /// A template does not exist or uses a variable that verifiers do not have.
    pub fn new(
        model: Arc<dyn Model>,
        templates: &Templates,
        options: VerifierOptions,
    ) -> Result<Self, TemplateError> {
        let prompt = templates.prompt(&options.template, Role::Verifier)?;
        let system = options
            .system
            .as_deref()
            .map(|name| templates.prompt(name, Role::Verifier))
            .transpose()?;

        let agent = label(Role::Verifier, &options.name);
        Ok(Self {
            model,
            prompt,
            system,
            options,
            agent,
            grammars: DashMap::new(),
            token: "root ::= [01]".into(),
        })
    }

    /// The constraints that the model is asked about.
    fn rules(&self, problem: &dyn Problem) -> Vec<Rule> {
        let kinds = self.options.kinds.of(problem.spec());
        let is_asked = |rule: &Rule| match rule.kind {
            None => true,
            Some(Kind::Format) => false,
            // A client's constraint of a kind has a check, which is evaluated instead.
            Some(kind) => problem.has_reference() && kinds.contains(kind),
        };
        problem.rules().into_iter().filter(is_asked).collect()
    }

    async fn complete(
        &self,
        trajectory: &Trajectory,
        line: &str,
        rules: &[Rule],
    ) -> Result<Completion, AgentError> {
        let options = &self.options;
        let (grammar, max_tokens) = match options.format {
            VerdictFormat::Token { .. } => (Some(Arc::clone(&self.token)), 1),
            VerdictFormat::Rating { best, .. } => (Some(format!("root ::= [0-{best}]").into()), 1),
            VerdictFormat::Reward { .. } => (None, 1),
            // Forced to the proposed line, so that its probability can be read off.
            VerdictFormat::Likelihood { max_tokens, .. } => {
                (Some(ending_in(line).into()), max_tokens)
            }
            VerdictFormat::Report { grammar: false, max_tokens } => (None, max_tokens),
            VerdictFormat::Report { grammar: true, max_tokens } => {
                let made = || report_grammar(rules.len()).into();
                (Some(self.grammars.entry(rules.len()).or_insert_with(made).clone()), max_tokens)
            }
        };

        let context = PromptContext {
            is_held: grammar.is_some(),
            action: line,
            rules,
            ..PromptContext::new(trajectory, options.history, &options.variables)
        };

        let request = CompletionRequest {
            system: self
                .system
                .as_ref()
                .map(|system| rendered(&self.agent, system, &context))
                .transpose()?,
            thinking: options.thinking,
            grammar,
            sampling: Sampling {
                temperature: options.temperature,
                top_p: 1.0,
                seed: seed(trajectory, line),
            },
            max_tokens,
            logprobs: !matches!(
                options.format,
                VerdictFormat::Report { .. } | VerdictFormat::Reward { .. }
            ),
            alternatives: if matches!(options.format, VerdictFormat::Rating { .. }) {
                ALTERNATIVES
            } else {
                0
            },
            scored: matches!(options.format, VerdictFormat::Reward { .. }).then(|| line.to_owned()),
            affinity: affinity(trajectory),
            ..CompletionRequest::raw(
                trajectory.machine.spec().slug,
                rendered(&self.agent, &self.prompt, &context)?,
            )
        };

        self.model
            .complete(request)
            .await
            .map_err(|error| AgentError { agent: self.agent.clone(), ..error })
    }

    fn report_verdict(
        &self,
        completion: &Completion,
        rules: &[Rule],
        max_tokens: u32,
    ) -> Result<Verdict, AgentError> {
        let Report { failed, score } =
            parse_report(&completion.text, rules.len()).map_err(|what| {
                if completion.is_truncated {
                    let reason = format!(
                        "the report was truncated after {max_tokens} tokens ({what}): raise \
                     `max_tokens`"
                    );
                    AgentError::new(&self.agent, Failure::TooLong, reason)
                } else {
                    malformed(&self.agent, &what, &completion.text)
                }
            })?;

        let reasons: Vec<_> = failed
            .iter()
            .map(|(index, reason)| format!("{}: {reason}", rules[*index].name))
            .collect();

        Ok(Verdict {
            score,
            violations: failed.iter().map(|(index, _)| rules[*index].name.clone()).collect(),
            feedback: (!reasons.is_empty()).then(|| reasons.join("; ")),
            ..Verdict::default()
        })
    }

    /// Clean if the model finds the proposed line likely, or wrote it without a grammar.
    fn likelihood_verdict(
        &self,
        completion: &Completion,
        line: &str,
        confidence_min: f32,
    ) -> Result<Verdict, AgentError> {
        // The proposed line was not reached: that says nothing about the step.
        if completion.is_truncated {
            let reason = "the answer was truncated before the proposed line: raise `max_tokens`";
            return Err(AgentError::new(&self.agent, Failure::TooLong, reason));
        }

        let wrong = |feedback: String, logprob| Verdict {
            score: WRONG,
            feedback: Some(feedback),
            logprob,
            ..Verdict::default()
        };

        // Only a server that ignores the grammar can have written another line.
        let own = prompt::last_line(&completion.text);
        if action_line(own, |said| said == line).0 != line {
            return Ok(wrong(
                "a model that was asked for the step itself wrote another one".to_owned(),
                None,
            ));
        }

        // Its least likely token decides: a wrong step often differs from the right one in a single
        // token.
        let lowest = completion.logprobs.iter().copied().reduce(f32::min);
        Ok(match lowest {
            Some(lowest) if lowest.exp() < confidence_min => wrong(
                format!("a model finds this step improbable (p = {:.3})", lowest.exp()),
                Some(lowest),
            ),
            lowest => Verdict { logprob: lowest, ..Verdict::default() },
        })
    }

    fn token_verdict(
        &self,
        completion: &Completion,
        confidence_min: Option<f32>,
    ) -> Result<Verdict, AgentError> {
        let logprob = completion.logprobs.first().copied();

        let unnamed = |feedback: String| (Vec::<Cow<'static, str>>::new(), Some(feedback));
        let (score, (violations, feedback)) =
            match (completion.text.trim(), confidence_min, logprob) {
                ("0", ..) => (
                    WRONG,
                    unnamed("a verifier that gives no reasons calls this step wrong".to_owned()),
                ),
                ("1", None, _) => (Score::ZERO, (Vec::new(), None)),
                ("1", Some(_), None) => {
                    let reason = "the model returns no log-probabilities: remove `confidence_min`";
                    return Err(AgentError::new(&self.agent, Failure::Unsupported, reason));
                }
                ("1", Some(least), Some(logprob)) if logprob.exp() >= least => {
                    (Score::ZERO, (Vec::new(), None))
                }
                ("1", Some(least), Some(logprob)) => {
                    let sure = logprob.exp();
                    (
                        UNSURE,
                        unnamed(format!(
                            "a verifier is {sure:.2} sure of this step, and {least:.2} is asked for"
                        )),
                    )
                }
                _ => {
                    return Err(malformed(
                        &self.agent,
                        "it is neither `0` nor `1`",
                        &completion.text,
                    ));
                }
            };

        Ok(Verdict { score, violations, feedback, logprob, ..Verdict::default() })
    }
}

/// Wrong if a score is below a threshold. `of` says whose score it is.
fn score_verdict(score: f64, threshold: f64, of: &str) -> Verdict {
    if score >= threshold {
        return Verdict::default();
    }
    let feedback = format!("{of} gives this step {score:.3}, and {threshold:.3} is asked for");
    Verdict { score: WRONG, feedback: Some(feedback), ..Verdict::default() }
}

#[async_trait]
impl AsyncVerifier for LlmVerifier {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::model(match self.options.format {
            VerdictFormat::Report { .. } => Method::Report,
            VerdictFormat::Likelihood { .. } => Method::Likelihood,
            VerdictFormat::Token { .. } => Method::Token,
            VerdictFormat::Rating { .. } => Method::Rating,
            VerdictFormat::Reward { .. } => Method::Reward,
        })
    }

    fn reads_words(&self) -> bool {
        true
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let problem = trajectory.machine.problem();

        // All of a client's constraints with a check are evaluated. For a benchmark task only the
        // format is, because the model judges the rest.
        let evaluated =
            if problem.has_reference() { Kinds::from_iter([Kind::Format]) } else { Kinds::ALL };
        if let Some(verdict) = Verdict::by_rules(trajectory.machine.as_ref(), evaluated) {
            return Ok(verdict);
        }

        let rules = self.rules(problem.as_ref());
        let completion = self.complete(trajectory, line, &rules).await?;

        let verdict = match self.options.format {
            VerdictFormat::Report { max_tokens, .. } => {
                self.report_verdict(&completion, &rules, max_tokens)
            }
            VerdictFormat::Token { confidence_min } => {
                self.token_verdict(&completion, confidence_min)
            }
            VerdictFormat::Likelihood { confidence_min, .. } => {
                self.likelihood_verdict(&completion, line, confidence_min)
            }
            VerdictFormat::Rating { best, threshold } => {
                expected_rating(&completion.alternatives, best)
                    .map(|rating| score_verdict(rating, threshold, "a model's expected rating"))
                    .map_err(|reason| {
                        let failure = match reason {
                            NoRating::NoAlternatives => Failure::Unsupported,
                            NoRating::Improbable { .. } => Failure::Malformed,
                        };
                        AgentError::new(&self.agent, failure, reason.to_string())
                    })
            }
            VerdictFormat::Reward { threshold } => completion
                .score
                .map(|score| score_verdict(score, threshold, "a reward model"))
                .ok_or_else(|| {
                    let reason = "the model returns no score: set its pool's `api` to `score` or \
                                  `pooling`";
                    AgentError::new(&self.agent, Failure::Unsupported, reason)
                }),
        }?;

        Ok(Verdict { usage: completion.usage, ..verdict })
    }
}

#[cfg(test)]
mod tests;
