//! Where two runs diverge: the first step of each trajectory that differs in action, violations or
//! decision.

use std::cmp::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prime_journal::Journal;
use serde::Serialize;
use utoipa::ToSchema;

use super::StepIndexes;
use super::run_index::RunIndex;
use crate::runs::error::RunError;

/// How long a trajectory is the same in two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Divergence {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Number of steps in the first run.
    pub steps_a: u64,
    /// Number of steps in the second run.
    pub steps_b: u64,
    /// Number of steps at the beginning that are the same in both runs.
    pub same: u64,
    /// The number of the first different step's event in the first run; null if there is none.
    #[schema(required)]
    pub seq_a: Option<u64>,
    /// The number of the first different step's event in the second run; null if there is none.
    #[schema(required)]
    pub seq_b: Option<u64>,
}

/// Two runs, trajectory by trajectory.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunComparison {
    /// The id of the first run.
    pub a: String,
    /// The id of the second run.
    pub b: String,
    /// True if more events are durable than were compared: ask again.
    pub has_more: bool,
    /// The trajectories that both runs have.
    pub trajectories: Vec<Divergence>,
}

fn divergences(a: &RunIndex, b: &RunIndex) -> Vec<Divergence> {
    let in_both =
        a.trajectories.iter().filter_map(|(key, of)| Some((*key, of, b.trajectories.get(key)?)));
    in_both
        .map(|((round, trajectory), a, b)| {
            let pairs = a.steps.iter().zip(&b.steps);
            let same =
                pairs.take_while(|(a, b)| a.hash == b.hash && a.depth() == b.depth()).count();

            Divergence {
                round,
                trajectory,
                steps_a: a.steps.len() as u64,
                steps_b: b.steps.len() as u64,
                same: same as u64,
                seq_a: a.steps.get(same).map(|step| step.seq),
                seq_b: b.steps.get(same).map(|step| step.seq),
            }
        })
        .collect()
}

impl StepIndexes {
    /// Compares two runs, trajectory by trajectory.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn compare(&self, a: &str, b: &str) -> Result<RunComparison, RunError> {
        // Both are brought up to date first, one after the other.
        let a_has_more = self.ask(a, |_, _, has_more| Ok(has_more)).await?;
        let b_has_more = self.ask(b, |_, _, has_more| Ok(has_more)).await?;
        let has_more = a_has_more || b_has_more;
        let (index_a, index_b) = (self.cache.get(a), self.cache.get(b));
        let (a, b) = (a.to_owned(), b.to_owned());

        // This waits for locks and walks both indexes: it must not use a thread that other requests
        // need.
        let compared = move |_: &dyn Journal| {
            let trajectories = compared((&a, &index_a), (&b, &index_b));
            Ok(RunComparison { a, b, has_more, trajectories })
        };
        self.store.read(compared).await
    }
}

/// The divergences of run `a` from run `b`, each with its id.
fn compared(
    (a, index_a): (&str, &Mutex<RunIndex>),
    (b, index_b): (&str, &Mutex<RunIndex>),
) -> Vec<Divergence> {
    // In the order of their ids, so that two comparisons never wait for each other.
    match a.cmp(b) {
        Ordering::Equal => {
            let index = locked(index_a);
            divergences(&index, &index)
        }
        Ordering::Less => {
            let a = locked(index_a);
            divergences(&a, &locked(index_b))
        }
        Ordering::Greater => {
            let b = locked(index_b);
            divergences(&locked(index_a), &b)
        }
    }
}

fn locked(index: &Mutex<RunIndex>) -> MutexGuard<'_, RunIndex> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}
