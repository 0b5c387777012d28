//! The runs that have to be noted in the search index, because a commit has changed them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use prime_journal::Write;

/// Maximum number of runs that are remembered. If more change, all runs are looked through.
const REMEMBERED_MAX: usize = 100_000;

#[derive(Default)]
struct State {
    ids: BTreeSet<String>,
    /// True if more runs were changed than are remembered.
    is_beyond: bool,
}

/// Filled by the thread `journal`, emptied by the indexer.
#[derive(Default)]
pub struct Changed {
    state: Mutex<State>,
    notify: Notify,
}

/// The changed runs of a round.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub ids: Vec<String>,
    /// True if others were forgotten.
    pub is_beyond: bool,
}

impl Changed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the runs whose entries are no longer what they were after these writes: those that
    /// begin, end, or get a flag. The progress of an open run is not searched.
    pub fn see(&self, writes: &[Write]) {
        let concerns = |write: &&Write| match write {
            Write::Accept { .. } | Write::Flag { .. } => true,
            Write::Update { is_over, .. } => *is_over,
            Write::Append { .. }
            | Write::Save { .. }
            | Write::Review { .. }
            | Write::Enqueue { .. } => false,
        };
        let mut ids = writes.iter().filter(concerns).map(|write| write.run_id().to_owned());
        if let Some(first) = ids.next() {
            self.add(std::iter::once(first).chain(ids));
        }
    }

    pub fn add(&self, ids: impl IntoIterator<Item = String>) {
        let mut state = self.state();
        state.ids.extend(ids);
        if state.ids.len() > REMEMBERED_MAX {
            *state = State { ids: BTreeSet::new(), is_beyond: true };
        }
        drop(state);
        self.notify.notify_one();
    }

    /// Waits until there is something to take.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }

    /// Takes up to this number of runs out.
    pub fn take(&self, most: usize) -> Round {
        let mut state = self.state();
        let is_beyond = std::mem::take(&mut state.is_beyond);
        let mut ids = Vec::new();
        while ids.len() < most
            && let Some(id) = state.ids.pop_first()
        {
            ids.push(id);
        }
        Round { ids, is_beyond }
    }
}

#[cfg(test)]
mod tests {
    use prime_journal::RunRow;

    use super::*;

    fn update(id: &str, is_over: bool) -> Write {
        Write::Update {
            id: id.to_owned(),
            updated_ms: 1,
            status: "running".to_owned(),
            is_over,
            resumed: 0,
            summary: "{}".to_owned(),
        }
    }

    #[test]
    fn runs_that_begin_or_end_are_remembered_once() {
        let changed = Changed::default();
        let (row, _) = RunRow::probe("new".to_owned());
        changed.see(&[
            Write::Accept { row, key: None },
            update("open", false),
            update("over", true),
            Write::Flag { id: "new".to_owned(), seqs: vec![1] },
        ]);
        assert_eq!(changed.take(1).ids, ["new"]);
        assert_eq!(changed.take(9), Round { ids: vec!["over".to_owned()], is_beyond: false });
        assert_eq!(changed.take(9), Round::default());
    }

    #[test]
    fn more_runs_than_are_remembered_are_looked_for() {
        let changed = Changed::default();
        changed.add((0..=REMEMBERED_MAX).map(|number| number.to_string()));
        changed.add(["later".to_owned()]);
        assert_eq!(changed.take(9), Round { ids: vec!["later".to_owned()], is_beyond: true });
    }
}
