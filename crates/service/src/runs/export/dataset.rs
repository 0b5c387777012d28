//! A run as a row of a data set, with the columns of `bench export` and those that only runs have.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runs::error::RunError;
use crate::runs::reader::RunReader;
use crate::runs::reader::event_reader::EventBatch;
use crate::runs::record::Status;
use crate::runs::spec::RunSpec;
use prime_bench::prompts::{Components, Style, whole};
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};
use prime_protocol::{Assurance, Decision, TurnId};
use prime_report::RecordedEvent;

/// A run as a row. Where the run has no value for a column, the column is null.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DatasetRow {
    /// The instance; of an input of the client's own, the run's id.
    pub id: String,
    /// The slug of the task.
    pub task: String,
    /// The number of the task in the benchmark.
    pub task_id: Option<i32>,
    /// The category of the task.
    pub category: String,
    /// The level of the instance.
    pub difficulty: Option<String>,
    /// The index of the instance within its level, from 0.
    pub index: Option<u32>,
    /// The seed that the instance was made from.
    pub seed: Option<u64>,
    /// The prompt for the whole problem.
    pub prompt: String,
    /// The input, as JSON.
    pub input: String,
    /// The run's answer, as JSON.
    pub answer: Option<String>,
    /// Committed steps of the answer; without one, of the deepest trajectory.
    pub steps: u64,
    /// The id of the run.
    pub run: String,
    /// How it ended.
    pub status: Status,
    /// What is promised of the answer.
    pub assurance: Option<Assurance>,
    /// The executor, and the models that the run's agents ask.
    pub executor: String,
    /// Names of engines and of models on servers.
    pub models: Vec<String>,
    /// The lines that lead to the answer. Null without an answer, and where a search has put them
    /// together from several trajectories.
    pub actions: Option<Vec<String>>,
    /// The chain over the run's events.
    pub chain: String,
    /// The node that executed it, if it was imported: then this daemon has judged none of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
}

/// The end of a trajectory.
#[derive(Deserialize)]
struct Ended {
    round: u32,
    trajectory: u32,
    answer: Option<Value>,
}

/// Follows the committed lines of each trajectory until one has the answer.
struct Lines<'a> {
    answer: &'a Value,
    open: BTreeMap<(u32, u32), Vec<String>>,
    found: Option<Vec<String>>,
}

impl Lines<'_> {
    fn see(&mut self, event: &[u8]) -> Result<(), serde_json::Error> {
        if event.starts_with(br#"{"event":"trajectory_ended""#) {
            let Ended { round, trajectory, answer } = serde_json::from_slice(event)?;
            let lines = self.open.remove(&(round, trajectory)).unwrap_or_default();
            if answer.as_ref() == Some(self.answer) && self.found.is_none() {
                self.found = Some(lines);
            }
        } else if let RecordedEvent::Step(step) = RecordedEvent::read(event)? {
            let TurnId { round, trajectory } = step.id();
            let lines = self.open.entry((round, trajectory)).or_default();
            // Steps above this one were taken back.
            lines.truncate(step.depth);
            if step.applicable && step.decision == Decision::Proceed {
                lines.push(step.action.into_owned());
            }
        }
        Ok(())
    }

    fn see_all(&mut self, batch: &EventBatch) -> Result<(), RunError> {
        for (seq, event) in batch.events() {
            if self.found.is_some() {
                break;
            }
            self.see(event)
                .map_err(|error| RunError::Unreadable(format!("event {seq}: {error}")))?;
        }
        Ok(())
    }
}

/// The instance of the benchmark that a run has by its name, `task/level/index` with the base seed
/// after an `@` if it is another.
fn instance(spec: &RunSpec) -> Option<InstanceId> {
    let (name, base_seed) = match spec.instance.split_once('@') {
        Some((name, seed)) => (name, seed.parse().ok()?),
        None => (spec.instance.as_str(), BASE_SEED),
    };
    let mut parts = name.split('/');
    let task = tasks::find(parts.next()?).ok()?;
    let difficulty: Difficulty = parts.next()?.parse().ok()?;
    let index = parts.next()?.parse().ok()?;
    Some(InstanceId { task, difficulty, index, base_seed })
}

fn prompt(problem: &dyn Problem) -> String {
    // Tasks of programs and clients have no page of their own.
    if problem.has_reference() {
        whole(problem, Style::Structured(Components::ALL))
    } else {
        String::new()
    }
}

impl RunReader {
    /// A run that is over as a row of a data set.
    ///
    /// # Errors
    /// When the run does not exist, is not over, or cannot be read by this version.
    pub async fn dataset_row(&self, id: &str) -> Result<DatasetRow, RunError> {
        let (_, record) = self.get(id).await?;
        if !record.status.is_over() {
            return Err(RunError::NotOver(id.to_owned()));
        }
        let (spec, tasks) = self.store().spec_and_tasks(id).await?;
        let of = spec.clone();
        let problem = tokio::task::spawn_blocking(move || of.problem(&tasks));
        let problem = problem.await.map_err(|_| RunError::Draining)??;

        let mut actions = None;
        if let Some(answer) = &record.result.answer
            && !spec.plan.strategy.is_synchronous()
        {
            let mut lines = Lines { answer, open: BTreeMap::new(), found: None };
            let mut events = Box::pin(self.events(id, 0, false));
            while lines.found.is_none()
                && let Some(batch) = events.try_next().await?
            {
                lines.see_all(&batch)?;
            }
            actions = lines.found;
        }

        let page = problem.spec();
        let instance = instance(&spec);
        Ok(DatasetRow {
            id: instance.map_or_else(|| id.to_owned(), |_| spec.instance.clone()),
            task: spec.task.clone(),
            task_id: instance.map(|_| i32::from(page.id)),
            category: page.category.name().to_owned(),
            difficulty: instance.map(|instance| instance.difficulty.name().to_owned()),
            index: instance.map(|instance| instance.index),
            seed: instance.map(|instance| instance.seed()),
            prompt: prompt(problem.as_ref()),
            input: spec.input.to_string(),
            answer: record.result.answer.as_ref().map(Value::to_string),
            steps: record.result.steps,
            run: id.to_owned(),
            status: record.status,
            assurance: record.result.assurance,
            executor: record.result.agents.executor,
            models: record.result.models,
            actions,
            chain: record.chain,
            imported_from: record.imported.map(|imported| imported.node),
        })
    }
}
