//! Judges the recorded proposals of a run again, each in its recorded state, with another verifier:
//! which verdicts, decisions and answers would change. No executor is asked.

mod ballots;
mod coordinator;
mod steps;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::progress::Progress;
use super::spec::RunSpec;
use super::store::replay::apply;
use ballots::Ballots;
use prime_agent_set::{AgentSet, Coordinator, Resources, Verifier};
use prime_bench::tasks::{Kind, Kinds, Problem};
use prime_protocol::{Assurance, Decision, Replay, Replayed, Score};
use prime_report::RecordedEvent;
use prime_settings::Settings;
use steps::Steps;

/// A verdict, and the decision on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedLine {
    /// The violation score V; 0 if nothing is violated.
    pub score: Score,
    /// The broken constraints that the verifier named.
    pub violations: Vec<String>,
    /// The decision on the verdict.
    pub decision: Decision,
}

/// A proposal on which the verifiers differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedStep {
    /// The number of its event.
    pub seq: u64,
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Committed steps before it.
    pub step: usize,
    /// The proposed line.
    pub line: String,
    /// The recorded verdict and decision.
    pub old: JudgedLine,
    /// The new verdict and decision.
    pub new: JudgedLine,
}

/// A value before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change<T> {
    /// The recorded value.
    pub before: T,
    /// The value under the new verdicts.
    pub after: T,
}

/// A run, judged again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejudgedRun {
    /// The id of the run.
    pub run: String,
    /// Slug of its task.
    pub task: String,
    /// Name of its instance.
    pub instance: String,
    /// True if the program of its task is another one here than the one that executed it. Left out
    /// if it is the same, or if either is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_program: bool,
    /// The names of the run's verifier and of the one that judged again.
    pub verifier: Change<String>,
    /// Name of the coordinator that decided on the new verdicts.
    pub coordinator: String,
    /// Number of proposals that were judged again.
    pub steps: u64,
    /// Number of proposals without a new verdict.
    pub failed: u64,
    /// Why the first of them has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Number of proposals whose score or named violations differ.
    pub verdicts_changed: u64,
    /// Number of proposals whose decision differs.
    pub decisions_changed: u64,
    /// The event of the first change.
    pub first_change: Option<u64>,
    /// The proposals whose verdict or decision differs, in the order of events.
    pub changes: Vec<ChangedStep>,
    /// What is guaranteed about the answer; null without one.
    pub assurance: Change<Option<Assurance>>,
    /// The answer, before and after; after, only recorded trajectories count whose committed steps
    /// would all still be committed.
    pub answer: Change<Option<Value>>,
    /// Whether both answers are equal; null if the run had none.
    pub answer_kept: Option<bool>,
}

/// The verifier that judges again, and what runs' coordinators are built from.
pub struct Rejudge<'a> {
    /// The settings, with the verifier that judges again.
    pub settings: &'a Settings,
    /// What agents are built with.
    pub resources: &'a Resources,
    /// The agents; only the verifier is asked.
    pub agents: &'a AgentSet,
}

/// A run that is being judged again, event by event.
pub struct Rejudging {
    run: String,
    spec: RunSpec,
    other_program: bool,
    problem: Arc<dyn Problem>,
    replay: Replay,
    progress: Progress,
    verifier: Arc<dyn Verifier>,
    verifier_name: String,
    coordinator: Arc<dyn Coordinator>,
    coordinator_name: String,
    steps: Steps,
    ballots: Ballots,
    judged: u64,
    failed: u64,
    failure: Option<String>,
    verdicts_changed: u64,
    decisions_changed: u64,
    changes: Vec<ChangedStep>,
}

/// Why the verifier has nothing to say about this problem; `None` if it has.
fn nothing_to_judge(problem: &dyn Problem, agents: &AgentSet) -> Option<String> {
    let name = &agents.names().verifier;
    if problem.needs_reader() && !agents.judge().reads_words() {
        return Some(format!(
            "its problem has constraints in words, which `{name}` cannot read: name a verifier \
             that asks a model"
        ));
    }

    if agents.judge().needs_algorithm() && !problem.has_reference() {
        return Some(format!(
            "its problem has no reference algorithm, which `{name}` follows: name `rules`, or a \
             verifier that asks a model or a program"
        ));
    }

    let basis = agents.basis(problem);
    let form = Kinds::from_iter([Kind::Format]);
    let looks = basis.kinds().union(form) != form || basis.is_opinion();
    (!problem.has_reference() && !looks).then(|| {
        format!(
            "its problem has no check that `{name}` evaluates: name a verifier that judges more \
             than the form of lines"
        )
    })
}

impl Rejudging {
    /// Begins with a run's spec as JSON.
    ///
    /// # Errors
    /// When this version cannot read the spec, or the verifier has nothing to judge in its problem.
    pub fn new(run: &str, spec: &str, with: &Rejudge<'_>) -> Result<Self, String> {
        let spec: RunSpec =
            serde_json::from_str(spec).map_err(|error| format!("its spec: {error}"))?;
        let problem = spec.problem(&with.resources.tasks).map_err(|error| error.to_string())?;
        if let Some(reason) = nothing_to_judge(problem.as_ref(), with.agents) {
            return Err(reason);
        }

        let (coordinator_name, coordinator) = coordinator::of(&spec, with)?;
        let other_program = spec.is_of_other_program(&with.resources.tasks);
        Ok(Self {
            run: run.to_owned(),
            other_program,
            replay: Replay::new(Arc::clone(&problem), spec.plan.clone()),
            progress: Progress::default(),
            verifier: prime_agent_set::Agents::verifier(with.agents),
            verifier_name: with.agents.names().verifier.clone(),
            coordinator,
            coordinator_name,
            steps: Steps::new(&problem),
            ballots: Ballots::default(),
            problem,
            spec,
            judged: 0,
            failed: 0,
            failure: None,
            verdicts_changed: 0,
            decisions_changed: 0,
            changes: Vec::new(),
        })
    }

    /// Takes the next event; judges it again if it is a step.
    ///
    /// # Errors
    /// When it cannot be read, or cannot have happened.
    pub async fn see(&mut self, seq: u64, event: &[u8]) -> Result<(), String> {
        let recorded = RecordedEvent::read(event)
            .map_err(|error| format!("event {seq}: not an event: {error}"))?;

        match &recorded {
            RecordedEvent::Step(step) => self.judge(seq, step).await,
            // Only votes on steps write such events.
            RecordedEvent::Other => {
                if let Some((round, answer)) = self.steps.chosen(event) {
                    self.ballots.answered(round, answer);
                }
            }
            _ => {}
        }

        apply(&mut self.replay, event, &mut self.progress)
            .map_err(|error| format!("event {seq}: {error}"))
    }

    async fn judge(&mut self, seq: u64, step: &prime_report::StepLine<'_>) {
        let id = step.id();
        let Some(trajectory) = self.replay.trajectory(id) else { return };
        // The runtime itself refuses such lines, under any verifier.
        if step.exhausted || trajectory.excludes(&step.action) {
            return;
        }

        // A copy, so that the replay never holds a candidate.
        let mut copy = trajectory.fork();
        if let Some(foresight) = copy.machine.foresee(&step.action) {
            // Without an answer the line is not applicable.
            drop(foresight.await);
        }
        let applicable = copy.machine.propose(&step.action).is_ok();

        let verdict = match self.verifier.judge(&copy, &step.action).await {
            Ok(verdict) => verdict,
            Err(error) => {
                self.failed += 1;
                self.failure.get_or_insert_with(|| format!("event {seq}: {error}"));
                let plan = &self.spec.plan;
                if let Some(answer) = self.steps.unjudged(plan, step, &mut copy, applicable) {
                    self.ballots.answered(step.round, answer);
                }
                return;
            }
        };
        self.judged += 1;

        let named: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
        let old_named: Vec<String> = step.violations.iter().map(ToString::to_string).collect();
        let is_same = verdict.score == step.score && named == old_named;

        // An equal verdict keeps its decision: a coordinator that is a model is not asked again.
        let decision = if is_same {
            step.decision
        } else {
            let ruled = self.coordinator.decide(&copy, &step.action, &verdict).await;
            match ruled {
                Ok(ruling) => self.spec.plan.strategy.ruling(ruling.decision),
                Err(error) => {
                    self.failure.get_or_insert_with(|| format!("event {seq}: {error}"));
                    step.decision
                }
            }
        };

        if !is_same || decision != step.decision {
            self.verdicts_changed += u64::from(!is_same);
            self.decisions_changed += u64::from(decision != step.decision);
            self.changes.push(ChangedStep {
                seq,
                round: step.round,
                trajectory: step.trajectory,
                step: step.depth,
                line: step.action.clone().into_owned(),
                old: JudgedLine {
                    score: step.score,
                    violations: old_named,
                    decision: step.decision,
                },
                new: JudgedLine { score: verdict.score, violations: named, decision },
            });
        }

        let own = verdict.basis.unwrap_or_else(|| self.verifier.basis(self.problem.spec()));
        let new = steps::New {
            score: verdict.score,
            basis: own.on(self.problem.as_ref()),
            proceeds: decision == Decision::Proceed && applicable,
        };
        if let Some(answer) = self.steps.judged(&self.spec.plan, step, &mut copy, applicable, new) {
            self.ballots.answered(step.round, answer);
        }
    }

    /// The result, after the last event.
    ///
    /// # Errors
    /// When the run's events do not end it.
    pub fn finish(self) -> Result<RejudgedRun, String> {
        let Replayed::Over(outcome) = self.replay.finish() else {
            return Err("its events do not say how it ended".to_owned());
        };

        let (answer, assurance) =
            self.ballots.winner(&self.spec.plan, self.problem.as_ref(), outcome.answer.as_ref());
        let answer_kept = outcome.answer.as_ref().map(|before| Some(before) == answer.as_ref());
        let RunSpec { task, instance, agents, .. } = self.spec;

        Ok(RejudgedRun {
            run: self.run,
            task,
            instance,
            other_program: self.other_program,
            verifier: Change { before: agents.verifier, after: self.verifier_name },
            coordinator: self.coordinator_name,
            steps: self.judged,
            failed: self.failed,
            failure: self.failure,
            verdicts_changed: self.verdicts_changed,
            decisions_changed: self.decisions_changed,
            first_change: self.changes.first().map(|change| change.seq),
            changes: self.changes,
            assurance: Change { before: outcome.assurance, after: assurance },
            answer: Change { before: outcome.answer, after: answer },
            answer_kept,
        })
    }
}
