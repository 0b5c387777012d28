//! A report as files: the page, each figure as SVG, each table as CSV, Markdown and LaTeX, and the
//! records as Parquet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Choice, Report, page};
use crate::records::{ParquetError, Records, write_parquet};
use crate::results::PairingError;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: io::Error },
    #[error("no records: run the study first, or name files of records")]
    NoRecords,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    pub figures: usize,
    pub tables: usize,
    pub records: usize,
}

fn put(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    fs::write(path, content).map_err(|reason| ReportError::File { path: path.to_owned(), reason })
}

fn folder(path: PathBuf) -> Result<PathBuf, ReportError> {
    fs::create_dir_all(&path).map_err(|reason| ReportError::File { path: path.clone(), reason })?;
    Ok(path)
}

/// Writes `report.html`, `figures/*.svg`, `tables/*.{csv,md,tex}` and `records.parquet` into a
/// folder, replacing files of the same names.
///
/// # Errors
/// If there are no records, systems cannot be paired, or a file cannot be written.
pub fn write_report(
    records: &Records,
    choice: &Choice,
    out: &Path,
) -> Result<Written, ReportError> {
    if records.records.is_empty() {
        return Err(ReportError::NoRecords);
    }

    let report = Report::new(&records.records, records.torn_bytes, choice)?;

    let out = folder(out.to_owned())?;
    let (figures, tables) = (folder(out.join("figures"))?, folder(out.join("tables"))?);

    for figure in &report.figures {
        put(&figures.join(format!("{}.svg", figure.id)), figure.svg.as_bytes())?;
    }

    for table in &report.tables {
        put(&tables.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
        put(&tables.join(format!("{}.md", table.id)), table.markdown().as_bytes())?;
        put(&tables.join(format!("{}.tex", table.id)), table.latex().as_bytes())?;
    }

    let parquet = out.join("records.parquet");
    let file = fs::File::create(&parquet)
        .map_err(|reason| ReportError::File { path: parquet.clone(), reason })?;
    write_parquet(&records.records, file)?;

    let path = out.join("report.html");
    put(&path, page(&report).as_bytes())?;

    let (figures, tables, records) =
        (report.figures.len(), report.tables.len(), records.records.len());
    Ok(Written { page: path, figures, tables, records })
}
