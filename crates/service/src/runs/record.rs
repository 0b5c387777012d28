//! The record of a run, as its users see it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::labels::{LabelMap, Labels};
use super::spec::{Origin, RunSpec};
use super::title::title_of;
use prime_journal::{ReviewCounts, RunRow};
use prime_protocol::{Assurance, Ending, Outcome};
use prime_report::{Reviews, RunResult};

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted; not started, or waiting for its agents.
    Queued,
    /// Executed by the runtime.
    Running,
    /// All of its trajectories wait for approval.
    Waiting,
    /// Over, with an answer that is guaranteed to be right.
    Verified,
    /// Over, with an answer in which the verifier found no fault, which is not a proof.
    Unrefuted,
    /// Over, without an answer, or with one that broke a constraint or was not checked.
    Unverified,
    /// An agent failed permanently; `failure` says why.
    Failed,
    /// Ended by its owner.
    Cancelled,
}

impl Status {
    /// All statuses, in the order of a run's life.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Verified,
        Self::Unrefuted,
        Self::Unverified,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status as JSON and the journal spell it.
    pub fn name(self) -> &'static str {
        [
            "queued",
            "running",
            "waiting",
            "verified",
            "unrefuted",
            "unverified",
            "failed",
            "cancelled",
        ][self as usize]
    }

    /// True if the run has ended; after that, only reviews change its record.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }

    /// The status of a run that ended like this.
    pub fn of(outcome: &Outcome) -> Self {
        Self::of_ended(outcome.ending.name(), outcome.assurance)
    }

    /// Like [`Status::of`], by the name of the ending.
    pub fn of_ended(ending: &str, assurance: Option<Assurance>) -> Self {
        if ending == Ending::AgentFailed(String::new()).name() {
            Self::Failed
        } else if ending == Ending::Cancelled.name() {
            Self::Cancelled
        } else {
            match assurance {
                Some(Assurance::Verified) => Self::Verified,
                Some(Assurance::Unrefuted) => Self::Unrefuted,
                Some(Assurance::Unchecked | Assurance::Violated) | None => Self::Unverified,
            }
        }
    }
}

/// Where an imported run comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// Its id there.
    pub run: String,
    /// The node that has executed it, as the bundle names it.
    pub node: String,
    /// The version of the program that wrote the bundle.
    pub program: String,
    /// When it came here: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub at: String,
    /// True if the program of its task was another one here when it came: this daemon has replayed
    /// its lines with a program that has not executed them. Left out if it was the same, or if
    /// either is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub other_program: bool,
}

/// What the summary of an imported run has besides its result.
#[derive(Deserialize)]
struct Mark {
    imported: Option<Imported>,
}

impl Imported {
    /// The summary of an imported run.
    pub(super) fn mark(&self, result: &RunResult) -> String {
        #[derive(Serialize)]
        struct Marked<'m> {
            #[serde(flatten)]
            result: &'m RunResult,
            imported: &'m Imported,
        }
        serde_json::to_string(&Marked { result, imported: self })
            .expect("invariant: results serialise")
    }

    /// The mark of a row's summary, if its run was imported.
    pub(super) fn of_summary(summary: &str) -> Result<Option<Self>, serde_json::Error> {
        // Few runs are imported, and lists have many.
        if !summary.contains(r#""imported":{"#) {
            return Ok(None);
        }
        serde_json::from_str::<Mark>(summary).map(|mark| mark.imported)
    }
}

/// A run, as far as it is durable.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunRecord {
    /// The id of the run; ids sort by time of acceptance.
    pub id: String,
    /// How lists name the run: by its instance; where the request brought an input of its own, by
    /// the beginning of that, and a custom problem without an input by that of its statement, up to
    /// 60 characters.
    #[serde(default)]
    pub title: String,
    /// What the run is doing, or how it ended.
    pub status: Status,
    /// The agent, of those that the run was accepted with, that this process cannot build, and what
    /// to do; with a shared journal, also what no live node has. The run waits, `queued`, until a
    /// reload, a restart or a node brings the agent back. Left out if nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// How often another process, or a decision about a step that waited, resumed it.
    pub resumed: u32,
    /// When the run was accepted: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When the record last changed: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Number of its last durable event, as in `Last-Event-ID` and `fork?seq=`.
    pub events: u64,
    /// The hash chain over its spec and its events up to that one: SHA-256 in hex.
    pub chain: String,
    /// The run and event that it continues, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Origin>,
    /// The run that it tries again, without what was rejected there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The runs that try it again, newest first, at most a hundred; a new one is named after about a
    /// second. Only in the answer about this one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub retried_as: Vec<String>,
    /// Where it comes from, if another daemon has executed it: this one has recomputed its chain
    /// and replayed its events, and judged none of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The engines that its agents ask about its task, each with the SHA-256 of its model's file,
    /// or null if that was not known; left out if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engines: BTreeMap<String, Option<String>>,
    /// The labels that clients gave it; left out if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = LabelMap, required = false)]
    pub labels: Labels,
    /// Its priority, if it is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -100, maximum = 100)]
    pub priority: Option<i32>,
    /// The time before which it does not begin: RFC 3339, UTC; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub not_before: Option<String>,
    /// The time at which it ends: RFC 3339, UTC; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub deadline: Option<String>,
    /// The result so far; final once the run is over.
    #[serde(flatten)]
    pub result: RunResult,
}

/// Milliseconds since 1970 as RFC 3339, UTC.
pub fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

impl RunRecord {
    /// Reads a row of the journal.
    ///
    /// # Errors
    /// When a version that this one does not understand wrote the row.
    pub fn of_row(row: &RunRow) -> Result<Self, serde_json::Error> {
        let spec: RunSpec = serde_json::from_str(&row.spec)?;
        let status = Status::ALL.into_iter().find(|status| status.name() == row.status);
        let mut status = status
            .ok_or_else(|| serde::de::Error::custom(format!("unknown status {:?}", row.status)))?;

        let mut result: RunResult = serde_json::from_str(&row.summary)?;
        if status.is_over() {
            result = result.without_unfounded_promise();
        }
        if status == Status::Verified && !result.verified {
            status = Status::Unverified;
        }

        Ok(Self {
            id: row.id.clone(),
            title: title_of(&spec.task, &spec.instance, &spec.input),
            status,
            waiting_for: None,
            resumed: row.resumed,
            created_at: timestamp(row.created_ms),
            updated_at: timestamp(row.updated_ms),
            events: row.head.seq,
            chain: row.head.hash.to_string(),
            engines: spec.engines(),
            forked_from: spec.forked_from,
            priority: spec.queueing.shown_priority(),
            not_before: spec.queueing.not_before_ms.map(timestamp),
            deadline: spec.queueing.deadline_ms.map(timestamp),
            retry_of: spec.retry_of,
            retried_as: Vec::new(),
            imported: Imported::of_summary(&row.summary)?,
            labels: spec.labels,
            result,
        }
        .with_reviews(row.reviews))
    }

    #[must_use]
    pub(super) fn with_reviews(mut self, reviews: ReviewCounts) -> Self {
        self.result.reviews = Reviews::of(reviews.needed, reviews.open, reviews.rejected);
        self
    }
}
