//! The report of a study. Everything comes from records and nothing from a clock, so that the same
//! records give the same bytes.

mod method;
mod page;
mod parts;
mod result;
mod write;

pub use page::page;
pub use write::{ReportError, Written, write_report};

use crate::figures::{Figure, Figures, all_figures};
use crate::records::Record;
use crate::results::{PairingError, Results};
use crate::tables::{Table, all_tables};
use crate::training::Training;

/// Figures and tables of a study.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the study.
    pub study: String,
    /// What was found, in sentences with intervals.
    pub result: Vec<String>,
    /// How it was measured and computed, one paragraph each.
    pub method: Vec<String>,
    /// What a reader must know before using the figures.
    pub remarks: Vec<String>,
    /// Figures, in the paper's order, then those of trainings.
    pub figures: Vec<Figure>,
    /// Why other figures are not drawn, a sentence each.
    pub left_out: Vec<String>,
    /// Tables, in the paper's order, then those of trainings.
    pub tables: Vec<Table>,
}

/// What a report shows.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names of systems in the order in which they are shown. Others follow by their records.
    pub order: Vec<String>,
    /// Systems to compare, left and right. If empty, the first with each other one.
    pub pairs: Vec<(String, String)>,
    /// The paper's numbers of tables and figures, such as `T2`. If empty, all.
    pub show: Vec<String>,
    /// Trainings whose curves are added.
    pub trainings: Vec<Training>,
    /// The address of the daemon that carried out the runs: values lead to them in its studio.
    pub daemon: Option<String>,
}

/// The records by the place of their system: in this order, else in that of the study file.
fn in_order(records: &[Record], order: &[String]) -> Vec<Record> {
    let place = |record: &Record| {
        let named = order.iter().position(|name| *name == record.system);
        let recorded = record.system_place.map_or(usize::MAX, |place| place as usize);
        (named.unwrap_or(usize::MAX), recorded)
    };
    let mut records = records.to_vec();
    // Stable: without places, systems stay in the order in which they first appear.
    records.sort_by_key(place);
    records
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
        let records = &in_order(records, &choice.order);
        let results = Results::new(records, &choice.pairs)?;

        let mut studies: Vec<&str> = records.iter().map(|record| record.study.as_str()).collect();
        studies.sort_unstable();
        studies.dedup();

        let (mut figures, mut left_out, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for (place, part) in parts::parts(records).into_iter().enumerate() {
            let (made, of_part) = Self::of_part(&part, place, choice, &results)?;
            figures.extend(made.drawn);
            left_out.extend(made.left_out);
            tables.extend(of_part);
        }
        figures.extend(choice.trainings.iter().flat_map(Training::figures));
        tables.extend(choice.trainings.iter().map(Training::table));

        Ok(Self {
            study: if studies.is_empty() { "no records".to_owned() } else { studies.join(", ") },
            result: result::result(&results),
            method: method::method(records, &results),
            remarks: method::remarks(&results, torn_bytes),
            figures,
            left_out,
            tables,
        })
    }

    /// Figures and tables of the part with this index. From the second part on they have
    /// identifiers of their own, and the headings say what the verifiers looked at.
    fn of_part(
        part: &parts::Part,
        place: usize,
        choice: &Choice,
        whole: &Results<'_>,
    ) -> Result<(Figures, Vec<Table>), PairingError> {
        // The systems of a pair may be in another part.
        let belongs = |pair: &&(String, String)| {
            Results::new(&part.records, std::slice::from_ref(*pair)).is_ok()
        };
        let pairs: Vec<_> = choice.pairs.iter().filter(belongs).cloned().collect();
        let mut results = Results::new(&part.records, &pairs)?;
        results.paint(&whole.slots());
        results.daemon.clone_from(&choice.daemon);
        let mut figures = all_figures(&results, &choice.show);
        let mut tables = all_tables(&results, &choice.show);

        let Some(evidence) = part.evidence else { return Ok((figures, tables)) };
        let named = |id: &mut String| {
            if place > 0 {
                *id = format!("{id}-{}", evidence.slug());
            }
        };
        let headed = |title: &mut String| {
            // A system's label in the heading may already say it.
            let warning = format!(" ({})", evidence.warning());
            let bare = title.strip_suffix(&warning).unwrap_or(title);
            *title = format!("{bare} ({})", evidence.heading());
        };
        for figure in &mut figures.drawn {
            named(&mut figure.id);
            named(&mut figure.table);
            headed(&mut figure.title);
        }
        for table in &mut tables {
            named(&mut table.id);
            headed(&mut table.title);
        }
        Ok((figures, tables))
    }
}

#[cfg(test)]
mod tests;
