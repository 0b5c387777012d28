//! Task modules that clients upload. A task belongs to an owner and has one current version; a
//! version names its module by the SHA-256 of its bytes, which are stored once for all versions
//! that have them.

use crate::error::JournalError;

/// A version of an owner's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskVersion {
    /// The owner: the name of an API key, or empty without keys.
    pub owner: String,
    /// The name of the task.
    pub name: String,
    /// SHA-256 of the module, 64 hexadecimal digits.
    pub digest: String,
    /// Bytes of the module.
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub uploaded_ms: u64,
    /// When another version took its place, or the task was removed; `None` for the current one.
    pub released_ms: Option<u64>,
}

/// What one owner may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Tasks with a current version.
    pub tasks_max: u64,
    /// Versions, with those that were released and are not collected yet.
    pub versions_max: u64,
    /// Bytes of the modules of all these versions.
    pub bytes_max: u64,
}

/// What became of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is the current version now.
    New,
    /// It was the current version already.
    Known,
    /// Nothing changed: the owner has this number of tasks, which is the most.
    TooManyTasks(u64),
    /// Nothing changed: the owner has this number of versions, which is the most.
    TooManyVersions(u64),
    /// Nothing changed: the owner's other versions have this many bytes of modules.
    TooManyBytes(u64),
}

/// What the versions of an owner come to without the one that is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Tasks of other names that have a current version.
    pub other_tasks: u64,
    /// Versions other than the one that is stored.
    pub other_versions: u64,
    /// Bytes of the modules of these versions.
    pub other_bytes: u64,
}

impl UploadLimits {
    /// Why a version of this size has no room beside the others, if it has none.
    pub fn refusal(&self, usage: Usage, bytes: u64) -> Option<Stored> {
        if usage.other_tasks >= self.tasks_max {
            Some(Stored::TooManyTasks(usage.other_tasks))
        } else if usage.other_versions >= self.versions_max {
            Some(Stored::TooManyVersions(usage.other_versions))
        } else if usage.other_bytes.saturating_add(bytes) > self.bytes_max {
            Some(Stored::TooManyBytes(usage.other_bytes))
        } else {
            None
        }
    }
}

/// The part of a store that keeps uploaded modules.
pub trait Uploads {
    /// Makes a version the current one of its task, and releases the one before. Its module must
    /// have the digest that it names.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn store(
        &self,
        version: &TaskVersion,
        module: &[u8],
        limits: &UploadLimits,
    ) -> Result<Stored, JournalError>;

    /// Releases the current version of a task. Whether there was one.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn release(&self, owner: &str, name: &str, now_ms: u64) -> Result<bool, JournalError>;

    /// The versions of all owners or of one, by owner and name, each task's newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn versions(&self, owner: Option<&str>) -> Result<Vec<TaskVersion>, JournalError>;

    /// The digest of the current version of a task.
    ///
    /// # Errors
    /// The store cannot be read.
    fn current(&self, owner: &str, name: &str) -> Result<Option<String>, JournalError>;

    /// The module of this digest.
    ///
    /// # Errors
    /// The store cannot be read, or the module is damaged.
    fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Removes versions that were released before this time and that the spec of no open run names,
    /// at most a hundred, and the modules that no version has any more. Returns the number of
    /// versions removed.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn collect_versions(&self, released_before_ms: u64) -> Result<u64, JournalError>;
}
