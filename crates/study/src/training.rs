//! Training curves from the JSON Lines that the trainer writes beside a model
//! (`MODEL.records.jsonl`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use prime_page::chart::{Axis, Line, LineChart, LinePoint};
use prime_page::number::count;

use crate::figures::{Figure, Panel};
use crate::tables::{Cell, Column, Table, slug};

/// Why curves cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// A line is not a record of a training, or the records lack their counter.
    #[error("{}, line {line}: {reason}; name a file that `prime-agents train` wrote beside a model", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Records of one training.
#[derive(Clone, Debug)]
pub struct Training {
    /// The file's name without its extensions.
    pub name: String,
    /// `step` in supervised training, `iteration` in reinforcement learning.
    counter: &'static str,
    records: Vec<Map<String, Value>>,
}

const COUNTERS: [&str; 2] = ["step", "iteration"];

/// Figures: id, y axis with its unit, factor to that unit, and the fields of a record.
const CURVES: [(&str, &str, f64, &[&str]); 4] = [
    ("loss", "loss, nats a token", 1.0, &["loss"]),
    ("right", "right, %", 100.0, &["exact", "solved", "right", HELD_OUT]),
    ("reward", "mean reward", 1.0, &["reward"]),
    ("drift", "nats a token", 1.0, &["kl", "entropy"]),
];
/// The share of held-out instances that are right, computed from a list of each record.
const HELD_OUT: &str = "held out";
/// Columns of the table.
const FIELDS: [&str; 12] = [
    "tokens",
    "loss",
    "exact",
    "reward",
    "solved",
    "right",
    HELD_OUT,
    "kl",
    "entropy",
    "clipped",
    "rate",
    "gradient_norm",
];
/// Maximum rows of the table; the figure has all records.
const ROWS_MAX: usize = 50;

/// Reads the records of a training. A last line that was not written whole is ignored.
///
/// # Errors
/// If the file cannot be read or has no records, or if a line is not a record.
pub fn read_training(path: &Path) -> Result<Training, TrainingError> {
    let text = fs::read_to_string(path)
        .map_err(|reason| TrainingError::File { path: path.to_owned(), reason })?;

    let failed = |line, reason: String| TrainingError::Line { path: path.to_owned(), line, reason };

    let mut records: Vec<Map<String, Value>> = Vec::new();

    for (line, text) in (1..).zip(text.split_inclusive('\n')) {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(record) => records.push(record),
            // Only the last line can lack its end: the trainer was still writing it.
            Err(_) if !text.ends_with('\n') => {}
            Err(reason) => return Err(failed(line, format!("no record of a training: {reason}"))),
        }
    }

    let has = |counter: &&'static str| {
        !records.is_empty()
            && records.iter().all(|record| record.get(*counter).is_some_and(Value::is_u64))
    };

    let Some(counter) = COUNTERS.into_iter().find(has) else {
        return Err(failed(1, "the records have neither `step` nor `iteration`".to_owned()));
    };

    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name =
        name.trim_end_matches(".jsonl").trim_end_matches(".records").trim_end_matches(".gguf");
    Ok(Training { name: name.to_owned(), counter, records })
}

/// A field of a record as a number.
fn number(record: &Map<String, Value>, field: &str) -> Option<f64> {
    if field != HELD_OUT {
        return record.get(field)?.as_f64();
    }
    // A record has the counts of each cell; the share is over all of them.
    let cells = record.get("held_out")?.as_array()?;
    let sum = |key: &str| cells.iter().filter_map(|cell| cell[key].as_f64()).sum::<f64>();
    (sum("instances") > 0.0).then(|| sum("right") / sum("instances"))
}

impl Training {
    fn id(&self) -> String {
        format!("training-{}", slug(&self.name))
    }

    /// The curves of this training, one figure for each quantity that its records have.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |(id, axis, factor, fields): (&str, &str, f64, &[&str])| {
            let point = |record: &Map<String, Value>, field: &str| {
                let (x, y) = (record.get(self.counter)?.as_f64()?, factor * number(record, field)?);
                y.is_finite().then_some(LinePoint { x, y, interval: None })
            };

            let is_dense = self.records.len() > ROWS_MAX;
            let line = |(slot, field): (usize, &&str)| {
                let points: Vec<_> =
                    self.records.iter().filter_map(|record| point(record, field)).collect();
                let name = (*field).to_owned();
                let has_markers = !is_dense;
                // A single record makes no curve; the table has it.
                (points.len() > 1).then_some(Line {
                    name,
                    slot,
                    is_dashed: false,
                    has_markers,
                    points,
                })
            };

            let series: Vec<_> = fields.iter().enumerate().filter_map(line).collect();

            let title = format!("Training of {}: {axis}", self.name);

            let chart = LineChart {
                title: title.clone(),
                x: Axis::linear(self.counter, (0.0, 0.0)),
                y: Axis::linear(axis, (0.0, if factor > 1.0 { factor } else { 0.0 })),
                series,
                value: None,
            };

            (!chart.series.is_empty()).then(|| Figure {
                id: format!("{}-{id}", self.id()),
                paper: "Section 3.2",
                title,
                caption: format!(
                    "All {} records of the training.",
                    count(self.records.len() as u64)
                ),
                panels: Panel::only(chart.svg()),
                table: self.id(),
            })
        };
        CURVES.into_iter().filter_map(figure).collect()
    }

    /// A table of at most 50 records, evenly spaced, including the last one.
    pub fn table(&self) -> Table {
        let fields: Vec<&str> = FIELDS
            .into_iter()
            .filter(|it| self.records.iter().any(|record| number(record, it).is_some()))
            .collect();

        let step = self.records.len().div_ceil(ROWS_MAX).max(1);
        // From the end, so that the last record is always chosen.
        let chosen = self.records.iter().rev().step_by(step).collect::<Vec<_>>().into_iter().rev();

        let row = |record: &Map<String, Value>| {
            let cell = |field: &&str| match number(record, field) {
                None => Cell::Empty,
                Some(value) if *field == "tokens" => Cell::number(value, 0),
                Some(value) => Cell::number(value, if *field == "rate" { 6 } else { 4 }),
            };

            let counter =
                record.get(self.counter).and_then(Value::as_u64).map_or(Cell::Empty, Cell::Count);
            std::iter::once(counter).chain(fields.iter().map(cell)).collect()
        };

        let mut columns = vec![Column::number(self.counter)];
        columns.extend(fields.iter().map(|field| Column::number(field)));

        Table {
            id: self.id(),
            paper: "Section 3.2",
            title: format!("Training of {}", self.name),
            caption: format!(
                "What the trainer recorded; {} of {} records. Loss in nats a token; exact, solved, right, held out and \
                 clipped are shares.",
                self.records.len().div_ceil(step),
                self.records.len()
            ),
            columns,
            rows: chosen.map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Training, TrainingError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my model.gguf.records.jsonl");
        fs::write(&path, text).unwrap();
        read_training(&path)
    }

    #[test]
    fn curves_of_both_trainings_are_drawn() {
        let line = |step: u32| {
            format!("{{\"step\":{step},\"tokens\":{},\"loss\":0.5,\"exact\":0.25}}\n", 100 * step)
        };
        let training = read(&(1..=120).map(line).collect::<String>()).unwrap();

        let table = training.table();
        assert_eq!((table.id.as_str(), table.rows.len()), ("training-my-model", 40));
        assert_eq!(table.rows.last().unwrap()[..2], [Cell::Count(120), Cell::number(12_000.0, 0)]);

        let ids: Vec<_> = training.figures().into_iter().map(|figure| figure.id).collect();
        assert_eq!(ids, ["training-my-model-loss", "training-my-model-right"]);

        let held_out =
            "\"held_out\":[{\"instances\":20,\"right\":5},{\"instances\":20,\"right\":15}]";
        let training = read(&format!(
            "{{\"iteration\":0,\"reward\":0.1,{held_out}}}\n{{\"iteration\":1,\"rew"
        ))
        .unwrap();

        let table = training.table();
        let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["iteration", "reward", "held out"]);
        assert_eq!(table.rows, [[Cell::Count(0), Cell::number(0.1, 4), Cell::number(0.5, 4)]]);
    }

    #[test]
    fn other_files_are_refused_with_the_line() {
        for (text, expected) in [
            ("{\"step\":1}\nx\n", "line 2: no record of a training"),
            ("{\"loss\":1}\n", "neither `step` nor `iteration`"),
            ("", "neither `step` nor `iteration`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("records.jsonl"), "{error}");
        }
    }
}
