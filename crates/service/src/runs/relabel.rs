//! Labels that replace those of a run's acceptance, in the store.

use std::collections::BTreeMap;

use super::error::RunError;
use super::labels::{Labels, check_labels};
use super::record::RunRecord;
use super::store::RunStore;

impl RunStore {
    /// Replaces all labels of a run, which may be over; durable when this returns.
    ///
    /// # Errors
    /// When the run does not exist, or the journal cannot be written.
    pub async fn relabel(&self, id: &str, labels: &Labels) -> Result<(), RunError> {
        let text = serde_json::to_string(labels).expect("invariant: texts serialise");
        let name = id.to_owned();
        // Whether it exists; a run that is removed meanwhile is refused below.
        self.row(id).await?;
        self.read(move |journal| journal.labels().relabel(&name, &text)).await?;
        self.changed().add([id.to_owned()]);
        Ok(())
    }

    /// Sets those labels of a run that have a value here, and removes the others that are named.
    /// Changes that others make at the same time are kept. Durable when this returns.
    ///
    /// # Errors
    /// When the run does not exist, the labels are not allowed together, or the journal cannot be
    /// written.
    pub async fn change_labels(
        &self,
        id: &str,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<(), RunError> {
        let of_acceptance = self.spec(id).await?.labels;
        // Each further round follows a change by somebody else.
        loop {
            let ids = [id.to_owned()];
            let before = self.read(move |journal| journal.labels().relabelled(&ids)).await?;
            let before = before.into_values().next();
            let mut labels = match before.as_deref() {
                Some(text) => read_labels(text)?,
                None => of_acceptance.clone(),
            };
            for (name, value) in changes {
                match value {
                    Some(value) => labels.insert(name.clone(), value.clone()),
                    None => labels.remove(name),
                };
            }
            check_labels(&labels).map_err(RunError::Labels)?;

            let text = serde_json::to_string(&labels).expect("invariant: texts serialise");
            let name = id.to_owned();
            let is_changed = self
                .read(move |journal| journal.labels().relabel_if(&name, before.as_deref(), &text))
                .await?;
            if is_changed {
                self.changed().add([id.to_owned()]);
                return Ok(());
            }
            // It may have been removed meanwhile.
            self.row(id).await?;
        }
    }

    /// Puts the labels into records that were given since the acceptance.
    pub(super) async fn label(&self, records: &mut [RunRecord]) -> Result<(), RunError> {
        let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
        let mut found = self.read(move |journal| journal.labels().relabelled(&ids)).await?;
        for record in records {
            match found.remove(&record.id).map(|text| read_labels(&text)) {
                None => {}
                Some(Ok(labels)) => record.labels = labels,
                // They can be replaced; until then the run has those of its acceptance.
                Some(Err(error)) => tracing::warn!(run = record.id, %error, "unreadable labels"),
            }
        }
        Ok(())
    }
}

/// Labels as the journal keeps them.
pub(super) fn read_labels(text: &str) -> Result<Labels, RunError> {
    serde_json::from_str(text).map_err(|error| RunError::Unreadable(format!("labels: {error}")))
}
