//! Notices that the write-ahead log was deleted while it is in use. SQLite would continue to write
//! to it, and after a crash its content would be lost.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(super) struct LogFile {
    path: PathBuf,
    /// Opened once it exists.
    file: Option<File>,
}

impl LogFile {
    pub(super) fn new(journal: &Path) -> Self {
        let mut path = journal.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the file has no name any more. False until it exists.
    pub(super) fn is_deleted(&mut self) -> bool {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let metadata = self.file.as_ref().and_then(|file| file.metadata().ok());
        metadata.is_some_and(|metadata| metadata.nlink() == 0)
    }

    /// The connection was opened again, which may have made another file.
    pub(super) fn reopen(&mut self) {
        self.file = None;
    }
}
