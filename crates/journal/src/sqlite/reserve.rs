//! Space beside the journal that is given up on a full disk, because removing runs takes room of
//! its own.

use std::fs::{File, remove_file};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// What follows the journal's name.
pub(super) const SUFFIX: &str = ".reserve";
/// Enough for the log of a small round of removal.
const BYTES: u64 = 4 << 20;

pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(super) fn new(journal: &Path) -> Self {
        let mut path = journal.as_os_str().to_owned();
        path.push(SUFFIX);
        Self { path: path.into() }
    }

    /// Allocates the space where there is room for it.
    pub(super) fn fill(&self) {
        let allocated = || {
            let file = File::options().create(true).truncate(false).write(true).open(&self.path)?;
            // Sets the length, too, and does nothing if the space is there.
            fallocate(&file, FallocateFlags::empty(), 0, BYTES)?;
            std::io::Result::Ok(())
        };

        if allocated().is_err() {
            // A part of it would only take the space from others.
            let _ = remove_file(&self.path);
        }
    }

    /// Returns the space to the file system. Returns whether there was any.
    pub(super) fn release(&self) -> bool {
        remove_file(&self.path).is_ok()
    }
}
