//! The lock that gives a journal to one process.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::JournalError;

/// A lock on the file `<path>.lock`, released when the process ends in any way. The file stays, because a file that is
/// deleted and recreated could be locked twice.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// # Errors
    /// `InUse` if it is taken, `Open` if the file cannot be made or locked.
    pub(super) fn take(path: &Path) -> Result<Self, JournalError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let cannot = |cause: std::io::Error| JournalError::Open {
            path: path.to_owned(),
            reason: format!("{} cannot be locked: {cause}", name.display()),
        };
        let file = File::options().write(true).create(true).truncate(false).open(&name).map_err(cannot)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(JournalError::InUse { path: path.to_owned() }),
            Err(errno) => Err(cannot(errno.into())),
        }
    }
}
