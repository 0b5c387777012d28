//! A report as files: the page, each figure as SVG, each table as CSV, Markdown and LaTeX, and the
//! records as Parquet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Choice, Report, page};
use crate::figures::Figure;
use crate::records::{ParquetError, Records, write_parquet};
use crate::results::PairingError;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The systems cannot be compared.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// The records cannot be written as Parquet.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// A file or folder cannot be written or removed.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// There are no records.
    #[error("no records: run the study first, or name files of records")]
    NoRecords,
}

/// The page's file.
const PAGE: &str = "report.html";

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// Number of drawings; a figure may have several.
    pub figures: usize,
    /// Number of tables; each is three files.
    pub tables: usize,
    /// Number of records.
    pub records: usize,
}

fn put(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    fs::write(path, content).map_err(|reason| ReportError::File { path: path.to_owned(), reason })
}

fn folder(path: PathBuf) -> Result<PathBuf, ReportError> {
    fs::create_dir_all(&path).map_err(|reason| ReportError::File { path: path.clone(), reason })?;
    Ok(path)
}

/// Removes files of an earlier report that this one does not have, so that they are not taken for
/// its own. `kept` are the names of this report's files, and `extensions` those of all files that
/// reports have.
fn remove_others(
    folder: &Path,
    extensions: &[&str],
    kept: impl Fn(&str) -> bool,
) -> Result<(), ReportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |reason| ReportError::File { path, reason }
    };
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let is_report =
            path.extension().is_some_and(|own| extensions.iter().any(|one| own == *one));
        let is_kept = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(&kept);
        if is_report && !is_kept {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// Writes `report.html`, `figures/*.svg`, `tables/*.{csv,md,tex}` and `records.parquet` into a
/// folder, and replaces a report that is there.
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
    let replaces = out.join(PAGE).is_file();
    let (figures, tables) = (folder(out.join("figures"))?, folder(out.join("tables"))?);

    if replaces {
        let is_own = |stem: &str| {
            let mut files = report.figures.iter().flat_map(Figure::files);
            files.any(|(name, _)| name == stem)
        };
        remove_others(&figures, &["svg"], is_own)?;
        remove_others(&tables, &["csv", "md", "tex"], |stem| {
            report.tables.iter().any(|one| one.id == stem)
        })?;
    }

    let drawings: Vec<(String, &str)> = report.figures.iter().flat_map(Figure::files).collect();
    for (name, svg) in &drawings {
        put(&figures.join(format!("{name}.svg")), svg.as_bytes())?;
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

    let path = out.join(PAGE);
    put(&path, page(&report).as_bytes())?;

    let (figures, tables, records) = (drawings.len(), report.tables.len(), records.records.len());
    Ok(Written { page: path, figures, tables, records })
}
