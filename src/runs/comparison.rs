//! What the runs on both sides of `agents.split` came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::live::{RunRecord, Status};
use super::service::{RunError, Runs};
use crate::agents::Names;
use crate::report::Arm;
use prime_bench::interval::Proportion;
use prime_journal::{JournalError, Query};

/// Rows that are read at once.
const PAGE: u32 = 500;
/// Most runs that are counted: the newest.
const RUNS_MAX: u64 = 100_000;

/// The runs of one side that had the same three agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArmFigures {
    /// `a`: the configured agent; `b`: the other one.
    pub arm: Arm,
    pub agents: Names,
    /// Runs that were accepted.
    pub runs: u64,
    /// Those that are over and were not cancelled. All that follows is of these.
    pub finished: u64,
    /// Those that are verified.
    pub verified: Proportion,
    /// Means over the finished runs; null where there are none.
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
    /// Milliseconds under way.
    pub wall_ms: f64,
}

/// Both sides, as far as runs are in the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// By side and agents.
    pub arms: Vec<ArmFigures>,
    /// All runs were counted; otherwise the newest of them, mostly 100,000.
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

impl Runs {
    /// Counts the runs of an owner, or of all, that are on a side of a comparison and were accepted since a time, in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn comparison(&self, owner: Option<String>, since_ms: Option<u64>) -> Result<Comparison, RunError> {
        let mut sums: BTreeMap<(Arm, Names), Sums> = BTreeMap::new();
        let mut query = Query { owner, since_ms, in_split: true, limit: PAGE, ..Query::default() };
        let mut seen = 0;
        let is_complete = loop {
            let page = match self.list(query.clone()).await {
                // Retention took the last run of the page before: where the next one begins is not known any more.
                Err(RunError::Journal(JournalError::NoSuchRun { .. })) => break false,
                page => page?,
            };
            let Some(last) = page.last() else { break true };
            query.after = Some(last.id.clone());
            for record in &page {
                if let Some(arm) = record.result.split {
                    sums.entry((arm, record.result.agents.clone())).or_default().add(record);
                }
            }
            seen += page.len() as u64;
            if page.len() < PAGE as usize {
                break true;
            }
            if seen >= RUNS_MAX {
                break false;
            }
        };
        let arms = sums.into_iter().map(|((arm, agents), sums)| sums.figures(arm, agents)).collect();
        Ok(Comparison { arms, is_complete })
    }
}
