//! The report of a study. Everything is made from records and nothing from a clock, so that the
//! same records give the same bytes.

mod method;
mod page;
mod write;

pub use page::page;
pub use write::{ReportError, Written, write_report};

use crate::figures::{Figure, all_figures};
use crate::records::Record;
use crate::results::{PairingError, Results};
use crate::tables::{Table, all_tables};
use crate::training::Training;

/// Figures and tables of a study.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the study.
    pub study: String,
    /// How it was measured and computed, one paragraph each.
    pub method: Vec<String>,
    /// What a reader must know before using the figures.
    pub remarks: Vec<String>,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
}

/// What a report shows.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Systems to compare, left and right. If empty, the first with each other one.
    pub pairs: Vec<(String, String)>,
    /// The paper's numbers of tables and figures, such as `T2`. If empty, all.
    pub show: Vec<String>,
    /// Trainings whose curves are added.
    pub trainings: Vec<Training>,
}

impl Report {
    /// Computes figures and tables. `torn_bytes` of the records were ignored when they were read.
    ///
    /// # Errors
    /// If systems cannot be paired.
    pub fn new(
        records: &[Record],
        torn_bytes: usize,
        choice: &Choice,
    ) -> Result<Self, PairingError> {
        let results = Results::new(records, &choice.pairs)?;

        let mut studies: Vec<&str> = records.iter().map(|record| record.study.as_str()).collect();
        studies.sort_unstable();
        studies.dedup();

        let mut figures = all_figures(&results, &choice.show);
        figures.extend(choice.trainings.iter().flat_map(Training::figures));
        let mut tables = all_tables(&results, &choice.show);
        tables.extend(choice.trainings.iter().map(Training::table));

        Ok(Self {
            study: if studies.is_empty() { "no records".to_owned() } else { studies.join(", ") },
            method: method::method(records, &results),
            remarks: method::remarks(&results, torn_bytes),
            figures,
            tables,
        })
    }
}

#[cfg(test)]
mod tests;
