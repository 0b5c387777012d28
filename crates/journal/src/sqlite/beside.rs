//! What lies beside a journal's file tells whether the file should be there: a missing or emptied
//! one must not start as a new journal, as if there had been no runs.

use std::fs::metadata;
use std::io;
use std::path::{Path, PathBuf};

use super::reserve;
use crate::error::JournalError;

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The file's bytes; `None` if there is none.
fn bytes(path: &Path) -> io::Result<Option<u64>> {
    match metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// # Errors
/// `Open` if the file has no content, although a journal's files are beside it.
pub(super) fn check(path: &Path) -> Result<(), JournalError> {
    let refused = |reason| JournalError::Open { path: path.to_owned(), reason };
    let unreadable = |cause: io::Error| refused(format!("cannot be read: {cause}"));

    let found = match bytes(path).map_err(unreadable)? {
        None => "there is no such file",
        Some(0) => "it has 0 bytes",
        Some(_) => return Ok(()),
    };

    for suffix in [reserve::SUFFIX, "-wal"] {
        let other = with(path, suffix);
        if bytes(&other).map_err(unreadable)?.is_some_and(|bytes| bytes > 0) {
            let other = other.display();
            return Err(refused(format!(
                "{found}, but {other} shows that there was a journal: put the file or a backup in \
                 its place, or, to begin a new journal without its runs, move {other} away"
            )));
        }
    }
    Ok(())
}
