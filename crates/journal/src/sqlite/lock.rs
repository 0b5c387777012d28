//! The lock that gives a journal to one process, by whatever name that process opens it.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::reserve::Reserve;
use crate::error::JournalError;

/// Locks on the file `<path>.lock` and on the journal itself, released when the process ends in any
/// way. The lock's file stays, because a file that is deleted and recreated could be locked twice.
///
/// It must be dropped after every connection: closing a file releases the locks that SQLite has on
/// it.
#[derive(Debug)]
pub(super) struct Lock {
    name: File,
    path: PathBuf,
    journal: File,
    /// The journal's file, if it was made for a new journal that is not complete yet.
    new: Option<PathBuf>,
}

impl Lock {
    /// Makes the file of the journal if there is none.
    ///
    /// # Errors
    /// `InUse` if it is taken, `Open` if a file cannot be made or locked, or the journal has
    /// several names.
    pub(super) fn take(path: &Path) -> Result<Self, JournalError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let (name, _) = locked(path, Path::new(&name))?;

        let (journal, is_new) = locked(path, path)?;

        let links = journal.metadata().map_or(1, |metadata| metadata.nlink());
        if links > 1 {
            // The log belongs to one of the names: after a crash, the others would lack the last
            // commits.
            let reason = format!(
                "the file has {links} names (hard links): remove all but one, or copy it instead"
            );
            return Err(JournalError::Open { path: path.to_owned(), reason });
        }
        Ok(Self { name, path: path.to_owned(), journal, new: is_new.then(|| path.to_owned()) })
    }

    /// Checks that the journal's file still has its name. SQLite would continue to write to one
    /// that was deleted or moved, and the next process would not find what it holds.
    ///
    /// # Errors
    /// `NotWritable`.
    pub(super) fn check_name(&self) -> Result<(), JournalError> {
        let place = |metadata: Metadata| (metadata.dev(), metadata.ino());

        let ours = self.journal.metadata().map(place);

        if let (Ok(ours), Ok(named)) = (ours, std::fs::metadata(&self.path).map(place))
            && ours == named
        {
            return Ok(());
        }
        Err(JournalError::NotWritable(format!(
            "its file {} was deleted, moved or replaced while it is in use: put it back; what it holds can be read until \
             this process ends",
            self.path.display()
        )))
    }

    /// The journal is complete: its file stays. Returns whether it was new.
    pub(super) fn keep(&mut self) -> bool {
        self.new.take().is_some()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            // A file that cannot be removed is empty, and the next start uses it, unless there is a
            // reserve beside it.
            Reserve::new(new).release();
            let _ = std::fs::remove_file(new);
        }
        // A child process that is being started shares these files until it executes its program,
        // so closing them here would not release the locks.
        for file in [&self.journal, &self.name] {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Checks that a name stands for a regular file, or for nothing yet: before any file is made, so
/// that a start that fails leaves none. Says what else the name stands for.
pub(super) fn check_kind(path: &Path) -> Result<(), String> {
    if let Ok(metadata) = std::fs::metadata(path) {
        if metadata.is_file() {
            return Ok(());
        }
        let what = if metadata.is_dir() {
            "it is a folder: name a file in it"
        } else {
            "it is a device, a pipe or a socket: name a regular file"
        };
        return Err(what.to_owned());
    }

    // A link that leads nowhere is there, unlike what it leads to.
    match std::fs::read_link(path) {
        Ok(target) => Err(format!(
            "it is a link to {}, which is not there: make that file (empty) and its folders, or remove \
             the link",
            target.display()
        )),
        Err(_) => Ok(()),
    }
}

/// Opens a file that exists. A lock does not need the right to write, but opening for writing is
/// tried first, so that a read-only disk is reported here.
fn existing(file: &Path) -> io::Result<File> {
    match File::options().write(true).open(file) {
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => File::open(file),
        opened => opened,
    }
}

/// Opens and locks a file of a journal; also returns whether it is new.
fn locked(path: &Path, file: &Path) -> Result<(File, bool), JournalError> {
    let cannot = |cause: io::Error| JournalError::Open {
        path: path.to_owned(),
        reason: format!("{} cannot be locked: {cause}", file.display()),
    };

    let (opened, is_new) = match File::options().write(true).create_new(true).open(file) {
        Ok(made) => (made, true),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            (existing(file).map_err(cannot)?, false)
        }
        Err(cause) => return Err(cannot(cause)),
    };

    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok((opened, is_new)),
        Err(Errno::WOULDBLOCK) => Err(JournalError::InUse { path: path.to_owned() }),
        Err(errno) => Err(cannot(errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{SqliteJournal, SqliteOptions};

    /// Why a journal of this name cannot be locked. Leaves nothing in the folder but what is there.
    fn refused(folder: &Path, name: &str) -> String {
        let there = || std::fs::read_dir(folder).unwrap().count();
        let before = there();
        let reason = match SqliteJournal::open(&folder.join(name), SqliteOptions::default()) {
            Err(JournalError::Open { reason, .. }) => reason,
            Err(other) => panic!("{name}: {other}"),
            Ok(_) => panic!("{name}: it is opened"),
        };
        assert_eq!(there(), before, "{name}: nothing is left");
        reason
    }

    #[test]
    fn only_a_regular_file_can_be_a_journal() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);

        symlink("real/runs.db", path("dangling")).unwrap();
        assert!(
            refused(folder.path(), "dangling").contains("a link to real/runs.db, which is not")
        );
        symlink("/dev/null", path("device")).unwrap();
        assert!(refused(folder.path(), "device").contains("a device"));
        std::fs::create_dir(path("folder")).unwrap();
        assert!(refused(folder.path(), "folder").contains("a folder"));

        // A link to a file is as good as the file.
        std::fs::write(path("there"), "").unwrap();
        symlink("there", path("link")).unwrap();
        SqliteJournal::open(&path("link"), SqliteOptions::default()).unwrap();
    }

    #[test]
    fn duplicates_of_its_files_do_not_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let mut lock = Lock::take(&path).unwrap();
        lock.keep();

        // Like those of a child process that was forked and has not executed its program yet.
        let duplicates = [lock.name.try_clone().unwrap(), lock.journal.try_clone().unwrap()];

        assert!(matches!(Lock::take(&path), Err(JournalError::InUse { .. })));

        drop(lock);
        Lock::take(&path).unwrap();
        drop(duplicates);
    }
}
