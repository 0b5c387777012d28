//! A file that lost its end, as a copy cut short does. SQLite reads nothing of a file that is
//! shorter than its header says, so that it is read from a copy of that size, whose missing pages
//! are zero.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::JournalError;

/// Bytes of SQLite's file header.
const HEADER_BYTES: usize = 100;

pub(super) struct Padded {
    path: PathBuf,
    /// What is missing.
    pub(super) finding: String,
    /// Removed with everything in it.
    _folder: TempDir,
}

impl Padded {
    /// Makes the copy, in the folder of the file, if the file is too short.
    ///
    /// # Errors
    /// `Open` if there is no room for it, or no right to make it.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, JournalError> {
        let failed = |cause: io::Error| JournalError::Open {
            path: path.to_owned(),
            reason: format!(
                "its end is missing, and a copy of full size cannot be made beside it: {cause}"
            ),
        };

        let Some((bytes, expected)) = lengths(path).map_err(failed)? else { return Ok(None) };
        Self::copy(path, bytes, expected).map(Some).map_err(failed)
    }

    fn copy(path: &Path, bytes: u64, expected: u64) -> io::Result<Self> {
        let parent = path.parent().unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(".journal-").tempdir_in(parent)?;

        let copy = folder.path().join("padded.db");
        fs::copy(path, &copy)?;
        File::options().write(true).open(&copy)?.set_len(expected)?;

        let log = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push("-wal");
            PathBuf::from(name)
        };
        // Commits that are not in the file yet.
        if log(path).exists() {
            fs::copy(log(path), log(&copy))?;
        }

        let finding = format!(
            "the file has {bytes} bytes, but its header says {expected}: its end is missing"
        );
        Ok(Self { path: copy, finding, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The bytes that a file has and those that it should have, if it has fewer.
fn lengths(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();

    let mut header = Vec::new();
    file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    let Ok(header) = <[u8; HEADER_BYTES]>::try_from(header) else { return Ok(None) };

    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    // 1 stands for 65,536, which does not fit.
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        bytes => u64::from(bytes),
    };
    // The number of pages counts only if the last writer set it.
    let pages = if number(24) == number(92) { u64::from(number(28)) } else { 0 };

    let expected = page * pages;
    Ok((bytes < expected).then_some((bytes, expected)))
}
