//! What systems spend on an instance, which is the budget of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Key, Record};
use tokio::sync::watch;

/// What a run may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// Nothing is made equal.
    Unlimited,
    /// As much as the other system spent, in tokens or seconds.
    Of(f64),
    /// The run of the other system was not measured, so that nobody knows.
    Unknown,
}

/// The record of a run whose budget nobody knows.
pub(super) fn without_budget(record: Record) -> Record {
    let reason = "the run whose spending is its budget was not measured";
    Record { failure: Some(reason.to_owned()), ..record }
}

/// The spending of the system to which others are made equal, by instance and repeat.
#[derive(Default)]
pub struct Spendings(Mutex<BTreeMap<Key, watch::Sender<Option<Budget>>>>);

impl Spendings {
    /// Starts with the runs that were measured before. A run that is still to come is waited for;
    /// one that is neither is unknown.
    pub fn new(study: &Study, found: &[Record], due: &[AskedRun]) -> Self {
        let spendings = Self::default();
        let Some(matched) = &study.matched else { return spendings };

        let is_it = |record: &&Record| record.system == matched.to && record.is_measured();
        for record in found.iter().filter(is_it) {
            let spent = matched.spent(record, study.prompts);
            spendings.sender(record.key()).send_replace(Some(Budget::Of(spent)));
        }

        let to_come = due.iter().filter(|run| study.systems[run.system].name == matched.to);
        let to_come: BTreeSet<Key> = to_come.map(|run| run.key(study)).collect();
        for run in due {
            let key = Key { system: matched.to.clone(), ..run.key(study) };
            if !to_come.contains(&key) {
                spendings.sender(key).send_if_modified(|budget| {
                    let is_missing = budget.is_none();
                    budget.get_or_insert(Budget::Unknown);
                    is_missing
                });
            }
        }
        spendings
    }

    fn sender(&self, key: Key) -> watch::Sender<Option<Budget>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| watch::channel(None).0).clone()
    }

    /// The budget of a run; waits for the run whose spending it is.
    pub(super) async fn budget(&self, study: &Study, run: &AskedRun) -> Budget {
        let Some(matched) = &study.matched else { return Budget::Unlimited };
        let sender = self.sender(Key { system: matched.to.clone(), ..run.key(study) });
        let mut known = sender.subscribe();
        let budget = known.wait_for(Option::is_some).await;
        budget.ok().and_then(|budget| *budget).unwrap_or(Budget::Unknown)
    }

    /// Notes what a run spent, if others wait for it.
    pub(super) fn note(&self, study: &Study, run: &AskedRun, record: &Record) {
        let Some(matched) = &study.matched else { return };
        if study.systems[run.system].name != matched.to {
            return;
        }
        let budget = if record.is_measured() {
            Budget::Of(matched.spent(record, study.prompts))
        } else {
            Budget::Unknown
        };
        self.sender(run.key(study)).send_replace(Some(budget));
    }
}
