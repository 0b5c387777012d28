//! Compares the runs on both sides of `agents.split`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunReader;
use crate::runs::error::RunError;
use crate::runs::record::{RunRecord, Status};
use prime_agent_set::Names;
use prime_bench::interval::Proportion;
use prime_journal::{JournalError, Query};
use prime_report::Arm;

/// Rows per read.
const PAGE: u32 = 500;
/// Maximum number of runs that are counted, newest first.
const RUNS_MAX: u64 = 100_000;

/// The runs of one side with the same three agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArmFigures {
    /// `a`: the configured agent; `b`: the other one.
    pub arm: Arm,
    /// Names of the agents.
    pub agents: Names,
    /// Accepted runs.
    pub runs: u64,
    /// Runs that are over and were not cancelled; the other figures refer to these.
    pub finished: u64,
    /// Verified runs.
    pub verified: Proportion,
    /// Means over the finished runs; null without any.
    pub mean: Option<Means>,
}

/// Means over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Means {
    /// Committed steps.
    pub steps: f64,
    pub proposals: f64,
    /// Prompt and completion tokens.
    pub tokens: f64,
    /// Run time in milliseconds.
    pub wall_ms: f64,
}

/// Both sides, over the runs in the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// The figures of each side and its agents.
    pub arms: Vec<ArmFigures>,
    /// True if all runs were counted; otherwise only the newest, usually 100,000.
    pub is_complete: bool,
}

#[derive(Default)]
struct Sums {
    runs: u64,
    finished: u64,
    verified: u64,
    steps: u64,
    proposals: u64,
    tokens: u64,
    wall_ms: u64,
}

impl Sums {
    fn add(&mut self, record: &RunRecord) {
        self.runs += 1;
        if !record.status.is_over() || record.status == Status::Cancelled {
            return;
        }

        let result = &record.result;
        self.finished += 1;
        self.verified += u64::from(record.status == Status::Verified);
        self.steps += result.steps;
        self.proposals += result.proposals;
        self.tokens += result.tokens.prompt + result.tokens.completion;
        self.wall_ms += result.wall_ms;
    }

    #[expect(clippy::cast_precision_loss, reason = "means for display")]
    fn figures(&self, arm: Arm, agents: Names) -> ArmFigures {
        let mean = |sum: u64| sum as f64 / self.finished as f64;
        let means = || Means {
            steps: mean(self.steps),
            proposals: mean(self.proposals),
            tokens: mean(self.tokens),
            wall_ms: mean(self.wall_ms),
        };

        ArmFigures {
            arm,
            agents,
            runs: self.runs,
            finished: self.finished,
            verified: Proportion::new(self.verified, self.finished),
            mean: (self.finished > 0).then(means),
        }
    }
}

impl RunReader {
    /// Compares the runs of an owner, or of everybody, that take part in a comparison and were
    /// accepted at `since_ms` (milliseconds since 1970) or later.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn comparison(
        &self,
        owner: Option<String>,
        since_ms: Option<u64>,
    ) -> Result<Comparison, RunError> {
        let mut sums: BTreeMap<(Arm, Names), Sums> = BTreeMap::new();
        let mut query = Query { owner, since_ms, in_split: true, limit: PAGE, ..Query::default() };
        let mut seen = 0;

        let is_complete = loop {
            let page = match self.list(query.clone()).await {
                // Retention removed the last run of the previous page: where the next one begins is
                // unknown.
                Err(RunError::Journal(JournalError::NoSuchRun { .. })) => break false,
                page => page?,
            };

            for record in &page.runs {
                if let Some(arm) = record.result.split {
                    sums.entry((arm, record.result.agents.clone())).or_default().add(record);
                }
            }

            seen += u64::from(PAGE);
            if page.next.is_none() {
                break true;
            }

            query.after = page.next;
            if seen >= RUNS_MAX {
                break false;
            }
        };

        let arms =
            sums.into_iter().map(|((arm, agents), sums)| sums.figures(arm, agents)).collect();
        Ok(Comparison { arms, is_complete })
    }
}
