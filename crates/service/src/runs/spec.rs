//! The spec of a run, as the journal keeps it: enough to start it again anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::approvals::policy::ApprovalPolicy;
use super::labels::Labels;
use super::record::timestamp;
use crate::app::Overrides;
use prime_agent_set::task_program::{OpenError, TaskPrograms};
use prime_agent_set::{Names, RecordedAgents};
use prime_bench::tasks::{self, Problem};
use prime_protocol::{Approval, ApprovalVerdict, Resolution, RunPlan};
use prime_report::{Arm, Judge, RunContext};
use prime_runtime::RunSampling;

/// The parent of a forked run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    /// The id of the parent.
    pub run: String,
    /// The last event that was copied.
    pub seq: u64,
    /// The line in place of the one that came next in the parent; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<NewLine>,
}

/// A line with which a fork begins. It is recorded like an approval that put it in the place of
/// the parent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewLine {
    /// The line.
    pub line: String,
    /// The name of the API key that gave it; `local` without keys.
    pub by: String,
    /// Number of this approval in the run.
    pub number: u32,
}

impl NewLine {
    /// What becomes of the parent's step.
    pub fn resolution(&self) -> Resolution {
        let approval = Approval {
            number: self.number,
            verdict: ApprovalVerdict::Edit,
            by: self.by.clone(),
            reason: String::new(),
            proposed: None,
        };
        Resolution { approval, line: Some(self.line.clone()) }
    }
}

/// Why the problem of a run cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProblem {
    /// This version does not know the task, or cannot read the input.
    #[error("{0}")]
    Unreadable(String),
    /// The task's program is missing at present: a configuration that has it brings the problem
    /// back.
    #[error("{0}")]
    Missing(String),
}

/// When a run is to begin and to end. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queueing {
    /// Runs with a higher one begin first.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// The time before which it does not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// The time at which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The time since which it would be waiting if its priority were waiting time, for the nodes of
    /// a shared journal: they take the run with the earliest first. `None` = since its acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_ms: Option<i64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Queueing {
    /// True if the client named nothing.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The priority, unless it is that of most runs.
    pub fn shown_priority(&self) -> Option<i32> {
        Some(self.priority).filter(|priority| *priority != 0)
    }

    /// What holds for a run that begins again from another at `now_ms`: the priority, as far as its
    /// key may have it, and a deadline that is still ahead. Also says what does not hold.
    pub fn again(self, now_ms: u64, priority_max: i32) -> (Self, Option<String>) {
        let deadline_ms = self.deadline_ms.filter(|deadline_ms| *deadline_ms > now_ms);
        let passed = self.deadline_ms.filter(|_| deadline_ms.is_none());
        let note = passed.map(|passed_ms| {
            format!(
                "the deadline {} had passed, and does not hold for this run",
                timestamp(passed_ms)
            )
        });
        let priority = self.priority.min(priority_max);
        (Self { priority, deadline_ms, ..Self::default() }, note)
    }

    /// The same with its rank, for a run that is accepted at `now_ms`.
    #[must_use]
    pub fn ranked(self, now_ms: u64, aging_ms: u64) -> Self {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let since_ms = signed(now_ms.max(self.not_before_ms.unwrap_or_default()));
        let worth_ms = signed(aging_ms).saturating_mul(self.priority.into());
        let rank_ms = since_ms.saturating_sub(worth_ms);
        Self { rank_ms: (rank_ms != signed(now_ms)).then_some(rank_ms), ..self }
    }
}

/// The rank of a run ([`Queueing::rank_ms`]), by its spec as the journal keeps it.
pub fn rank_of(spec: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct Ranked {
        #[serde(default)]
        queueing: Queueing,
    }
    // Most specs have none, and are long to read.
    spec.contains("\"rank_ms\"")
        .then(|| serde_json::from_str::<Ranked>(spec).ok())??
        .queueing
        .rank_ms
}

/// Everything about a run that is fixed when it is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The task's slug; `problem` for a custom problem.
    pub task: String,
    /// The instance's name, or `input`.
    pub instance: String,
    /// The task's input object; the definition of a custom problem.
    pub input: Value,
    /// True if the task is a program or a module. A configured one is found by its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_program: bool,
    /// The SHA-256 of the task's module, if a client has uploaded it: the run keeps using it,
    /// whatever happens to the task. The journal looks here before it removes a module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The SHA-256 of what the task's configured program declared, its command and its files when the
    /// run was accepted; `None` for other tasks, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The plan: strategy, rounds, thresholds and limits.
    pub plan: RunPlan,
    /// Which of its steps wait for approval; `None` if none do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,
    /// How its executors sample, and the run's seed.
    pub sampling: RunSampling,
    /// The agents that the request chose instead of the configured ones.
    #[serde(default)]
    pub overrides: Overrides,
    /// The resulting agents.
    pub agents: Names,
    /// These agents with everything that determines what they do: the process that executes the run
    /// builds its agents from this record. `None` for custom agents.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write",
        deserialize_with = "read"
    )]
    pub recorded: Option<Arc<RecordedAgents>>,
    /// Caveats about the agents for anyone who compares results.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Hash of the settings with which it was accepted.
    pub config_hash: String,
    /// Its side in the comparison of `agents.split`, if it takes part; `overrides` has the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Arm>,
    /// The run and event that it continues, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Origin>,
    /// The run that it tries again; the plan has what was rejected there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The labels of its acceptance; the journal has those that were given since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// When it is to begin and to end.
    #[serde(default, skip_serializing_if = "Queueing::is_default")]
    pub queueing: Queueing,
    /// The caller's trace context (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn write<S: Serializer>(
    recorded: &Option<Arc<RecordedAgents>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    recorded.as_deref().serialize(serializer)
}

/// What the agents of a run need of the node that executes it ([`RecordedAgents::needs`]), by its
/// spec as the journal keeps it; nothing for custom agents, or where this version cannot read them.
pub fn needs_of(spec: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Agents {
        recorded: Option<RecordedAgents>,
    }
    let agents = serde_json::from_str::<Agents>(spec).ok().and_then(|spec| spec.recorded);
    agents.map(|agents| agents.needs()).unwrap_or_default()
}

fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<RecordedAgents>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(Arc::new))
}

impl RunSpec {
    /// The decision about the step whose place a fork's line takes, by the approval's number.
    pub fn new_line_of(&self, number: u32) -> Option<Resolution> {
        let line = self.forked_from.as_ref()?.line.as_ref()?;
        (line.number == number).then(|| line.resolution())
    }

    /// The engines that its agents ask about its task, each with the SHA-256 of its model.
    pub fn engines(&self) -> BTreeMap<String, Option<String>> {
        self.recorded.as_ref().map(|recorded| recorded.engines.clone()).unwrap_or_default()
    }

    /// The models that its agents ask: names of engines and of models on servers.
    pub fn models(&self) -> Vec<String> {
        let Some(recorded) = &self.recorded else { return Vec::new() };
        let served = recorded.pools.values().flat_map(|pool| &pool.models);
        recorded.engines.keys().chain(served).cloned().collect()
    }

    /// The judge of its steps.
    pub fn judge(&self) -> Judge {
        Judge {
            verifier: self.agents.verifier.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            models: self.recorded.as_ref().map(|agents| agents.of_verifier()).unwrap_or_default(),
        }
    }

    /// The part of results that does not depend on the outcome.
    pub fn context(&self) -> RunContext {
        RunContext {
            task: self.task.clone(),
            instance: self.instance.clone(),
            agents: self.agents.clone(),
            models: self.models(),
            notes: self.notes.clone(),
            basis: self.plan.basis,
            card: self.recorded.as_ref().and_then(|recorded| recorded.card.clone()),
            config_hash: self.config_hash.clone(),
            strategy: self.plan.strategy,
            seed: self.sampling.seed,
            split: self.split,
        }
    }

    /// True if the program of its task is not the one here that it was accepted with. False if
    /// either is not known. Blocks until the program has declared its task.
    pub fn is_of_other_program(&self, tasks: &TaskPrograms) -> bool {
        let Some(recorded) = &self.program else { return false };
        self.program_here(tasks).is_some_and(|digest| digest != *recorded)
    }

    /// What [`RunSpec::program`] is for a run that is accepted now. Blocks like
    /// [`RunSpec::is_of_other_program`].
    pub fn program_here(&self, tasks: &TaskPrograms) -> Option<String> {
        if !self.is_of_program || self.module.is_some() {
            return None;
        }
        tasks.get(&self.task).ok().flatten()?.digest().ok()
    }

    /// The problem to solve. Blocks while the program of a task answers.
    ///
    /// # Errors
    /// When this version does not know the task, or cannot read the input; or when the task is a
    /// program that is not configured or does not answer.
    pub fn problem(&self, tasks: &TaskPrograms) -> Result<Arc<dyn Problem>, NoProblem> {
        let unreadable = |error: &dyn std::fmt::Display| NoProblem::Unreadable(error.to_string());
        if self.task == prime_problems::SPEC.slug {
            return prime_problems::Custom::read(&self.input)
                .map(|custom| custom.problem())
                .map_err(|error| unreadable(&error));
        }
        let failed = |error: OpenError| match error {
            OpenError::Refused { .. } => unreadable(&error),
            OpenError::Unknown { .. } | OpenError::Program(_) => {
                NoProblem::Missing(error.to_string())
            }
        };
        if let Some(digest) = &self.module {
            return tasks.open_module(&self.task, digest, &self.input).map_err(failed);
        }
        match tasks::find(&self.task) {
            Ok(task) => task.read_input(&self.input).map_err(|error| unreadable(&error)),
            Err(unknown) if !self.is_of_program => Err(unreadable(&unknown)),
            Err(_) => tasks.open(&self.task, &self.input).map_err(failed),
        }
    }
}
