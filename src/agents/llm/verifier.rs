//! A Verifier that is a language model: it reads the step and says what is wrong with it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dashmap::DashMap;

use super::report::{Report, read_report, report_grammar};
use super::{affinity, label, malformed, rendered, seed};
use crate::agents::model::{Ask, Model, Reply};
use crate::agents::prompt::{self, History, Prompt, Scene, TemplateError, Templates};
use crate::agents::rules;
use crate::agents::{AgentError, AsyncVerifier, Failure, Sampling};
use prime_bench::tasks::{Kind, Kinds, Problem, Rule};
use prime_protocol::{Role, Score, Trajectory, Verdict};

/// V of a step that a single token calls wrong, and of one that it does not call right surely enough.
const WRONG: Score = Score::from_tenths(10);
const UNSURE: Score = Score::from_tenths(2);

/// What a verifying model writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// The paper's report: each constraint with PASS or FAIL and a reason, the whole, and a score.
    Report {
        /// Whether the report is held to its grammar.
        grammar: bool,
        /// Most tokens of a report.
        max_tokens: u32,
    },
    /// The model is asked as an executor is, and held to the proposed line after a free line of its own: a line that it
    /// finds improbable is wrong. For executors' own models, which need not have learned to judge. A server that cannot be
    /// held to a line answers freely; then its own line must be the proposed one.
    Likelihood {
        /// A token of a lower probability (0 to 1) makes the step wrong.
        least: f32,
        /// Most tokens of an answer.
        max_tokens: u32,
    },
    /// One token, `1` for a right step and `0` for a wrong one, held to a grammar; its log-probability is recorded.
    Token {
        /// A `1` of a lower probability (0 to 1) counts as a minor violation.
        confidence_min: Option<f32>,
    },
}

/// The grammar of any line or none, and then this one.
fn held_to(line: &str) -> String {
    let literal: String =
        line.chars().flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] }).collect();
    format!("root ::= ([^\\n]* \"\\n\")? \"{literal}\"")
}

/// How a verifier asks its model.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifierOptions {
    /// What configuration and messages call it.
    pub name: String,
    pub mode: Mode,
    /// The template of the prompt, by name.
    pub template: String,
    /// The template of the instructions that do not change from turn to turn.
    pub system: Option<String>,
    /// The kinds of constraints that the model is asked about. `format` is always the machine's to judge.
    pub kinds: Kinds,
    pub history: History,
    /// 0 is greedy, and answers the same question the same way.
    pub temperature: f32,
    /// The user's own variables, for the templates.
    pub variables: BTreeMap<String, String>,
}

impl VerifierOptions {
    fn of(name: impl Into<String>, mode: Mode, template: &str) -> Self {
        Self {
            name: name.into(),
            mode,
            template: template.to_owned(),
            system: None,
            kinds: Kinds::ALL,
            history: History::None,
            temperature: 0.0,
            variables: BTreeMap::new(),
        }
    }

    /// The paper's prompt and report, with its grammar.
    pub fn report(name: impl Into<String>, max_tokens: u32) -> Self {
        Self::of(name, Mode::Report { grammar: true, max_tokens }, "verifier/check.j2")
    }

    /// The executor's own prompt, and the proposed line as its answer.
    pub fn likelihood(name: impl Into<String>, least: f32, max_tokens: u32) -> Self {
        Self::of(name, Mode::Likelihood { least, max_tokens }, "verifier/likelihood.j2")
    }

    /// One token, for small models that were trained to it.
    pub fn token(name: impl Into<String>, confidence_min: Option<f32>) -> Self {
        Self::of(name, Mode::Token { confidence_min }, "verifier/token.j2")
    }
}

/// Judges what a model says of a step.
///
/// What can be decided without it is: a line that was refused, and on a client's problem the constraints with a `check`.
/// The model is then asked about the constraints in words alone.
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
    /// # Errors
    /// When a template does not exist or asks for a variable that verifiers do not have.
    pub fn new(model: Arc<dyn Model>, templates: &Templates, options: VerifierOptions) -> Result<Self, TemplateError> {
        let prompt = templates.prompt(&options.template, Role::Verifier)?;
        let system = options.system.as_deref().map(|name| templates.prompt(name, Role::Verifier)).transpose()?;
        let agent = label(Role::Verifier, &options.name);
        Ok(Self { model, prompt, system, options, agent, grammars: DashMap::new(), token: "root ::= [01]".into() })
    }

    /// The constraints that the model is asked about.
    fn rules(&self, problem: &dyn Problem) -> Vec<Rule> {
        let is_asked = |rule: &Rule| match rule.kind {
            None => true,
            Some(Kind::Format) => false,
            // A client's check is evaluated.
            Some(kind) => problem.has_reference() && self.options.kinds.contains(kind),
        };
        problem.rules().into_iter().filter(is_asked).collect()
    }

    async fn ask(&self, trajectory: &Trajectory, line: &str, rules: &[Rule]) -> Result<Reply, AgentError> {
        let options = &self.options;
        let (grammar, max_tokens) = match options.mode {
            Mode::Token { .. } => (Some(Arc::clone(&self.token)), 1),
            Mode::Likelihood { max_tokens, .. } => (Some(held_to(line).into()), max_tokens),
            Mode::Report { grammar: false, max_tokens } => (None, max_tokens),
            Mode::Report { grammar: true, max_tokens } => {
                let made = || report_grammar(rules.len()).into();
                (Some(self.grammars.entry(rules.len()).or_insert_with(made).clone()), max_tokens)
            }
        };
        let scene = Scene {
            is_held: grammar.is_some(),
            action: line,
            rules,
            ..Scene::new(trajectory, options.history, &options.variables)
        };
        let ask = Ask {
            system: self.system.as_ref().map(|system| rendered(&self.agent, system, &scene)).transpose()?,
            prompt: rendered(&self.agent, &self.prompt, &scene)?,
            grammar,
            sampling: Sampling { temperature: options.temperature, top_p: 1.0, seed: seed(trajectory, line) },
            max_tokens,
            logprobs: !matches!(options.mode, Mode::Report { .. }),
            affinity: affinity(trajectory),
        };
        self.model.ask(ask).await.map_err(|error| AgentError { agent: self.agent.clone(), ..error })
    }

    fn reported(&self, reply: &Reply, rules: &[Rule], max_tokens: u32) -> Result<Verdict, AgentError> {
        let Report { failed, score } = read_report(&reply.text, rules.len()).map_err(|what| {
            if reply.is_cut {
                let reason = format!("the report was cut after {max_tokens} tokens ({what}): allow more of them");
                AgentError::new(&self.agent, Failure::TooLong, reason)
            } else {
                malformed(&self.agent, &what, &reply.text)
            }
        })?;
        let reasons: Vec<_> =
            failed.iter().map(|(place, reason)| format!("{}: {reason}", rules[*place].name)).collect();
        Ok(Verdict {
            score,
            violations: failed.iter().map(|(place, _)| rules[*place].name.clone()).collect(),
            feedback: (!reasons.is_empty()).then(|| reasons.join("; ")),
            ..Verdict::default()
        })
    }

    /// Whether the model finds the proposed line likely where it was held to it, or wrote it by itself.
    fn likely(&self, reply: &Reply, line: &str, least: f32) -> Result<Verdict, AgentError> {
        if reply.is_cut {
            let reason = "the answer was cut before it came to the proposed line: allow more tokens";
            return Err(AgentError::new(&self.agent, Failure::TooLong, reason));
        }
        let wrong = |feedback: String, logprob| Verdict {
            score: WRONG,
            feedback: Some(feedback),
            logprob,
            ..Verdict::default()
        };
        let own = prompt::last_line(&reply.text);
        if own != line {
            return Ok(wrong("a model that was asked for the step itself wrote another one".to_owned(), None));
        }
        let lowest = reply.logprobs.iter().copied().reduce(f32::min);
        Ok(match lowest {
            Some(lowest) if lowest.exp() < least => {
                wrong(format!("a model finds this step improbable (p = {:.3})", lowest.exp()), Some(lowest))
            }
            lowest => Verdict { logprob: lowest, ..Verdict::default() },
        })
    }

    fn told(&self, reply: &Reply, confidence_min: Option<f32>) -> Result<Verdict, AgentError> {
        let logprob = reply.logprobs.first().copied();
        let unsaid = |feedback: String| (Vec::<Cow<'static, str>>::new(), Some(feedback));
        let (score, (violations, feedback)) = match (reply.text.trim(), confidence_min, logprob) {
            ("0", ..) => (WRONG, unsaid("a verifier that gives no reasons calls this step wrong".to_owned())),
            ("1", None, _) => (Score::ZERO, (Vec::new(), None)),
            ("1", Some(_), None) => {
                let reason = "the model gives no log-probabilities: leave `confidence_min` out";
                return Err(AgentError::new(&self.agent, Failure::Unsupported, reason));
            }
            ("1", Some(least), Some(logprob)) if logprob.exp() >= least => (Score::ZERO, (Vec::new(), None)),
            ("1", Some(least), Some(logprob)) => {
                let sure = logprob.exp();
                (UNSURE, unsaid(format!("a verifier is {sure:.2} sure of this step, and {least:.2} is asked for")))
            }
            _ => return Err(malformed(&self.agent, "it is neither `0` nor `1`", &reply.text)),
        };
        Ok(Verdict { score, violations, feedback, logprob, ..Verdict::default() })
    }
}

#[async_trait]
impl AsyncVerifier for LlmVerifier {
    fn kinds(&self) -> Kinds {
        let always = std::iter::once(Kind::Format);
        self.options.kinds.iter().chain(always).collect()
    }

    fn reads_words(&self) -> bool {
        true
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let problem = trajectory.machine.problem();
        let evaluated = if problem.has_reference() { Kinds::from_iter([Kind::Format]) } else { Kinds::ALL };
        if let Some(verdict) = rules::broken(trajectory.machine.as_ref(), evaluated) {
            return Ok(verdict);
        }
        let rules = self.rules(problem.as_ref());
        let reply = self.ask(trajectory, line, &rules).await?;
        let verdict = match self.options.mode {
            Mode::Report { max_tokens, .. } => self.reported(&reply, &rules, max_tokens),
            Mode::Token { confidence_min } => self.told(&reply, confidence_min),
            Mode::Likelihood { least, .. } => self.likely(&reply, line, least),
        }?;
        Ok(Verdict { usage: reply.usage, ..verdict })
    }
}

#[cfg(test)]
mod tests;
