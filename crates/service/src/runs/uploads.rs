//! Task modules that clients upload: checked, stored in the journal, found there for runs, and
//! removed when they are no longer used.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::error::RunError;
use super::service::Runs;
use crate::app::uploaded_limits;
use prime_agent_set::task_program::{ModuleStore, name_fault, probe_module};
use prime_agent_set::{AgentError, Failure};
use prime_journal::{Journal, JournalError, Stored, TaskVersion, UploadLimits};

/// How long a released version stays: runs of it that are accepted meanwhile still find it.
const RELEASED_STAYS_MS: u64 = 3_600_000;
/// Maximum number of versions of an owner, as a multiple of the tasks that it may have, released
/// versions included.
const VERSIONS_PER_TASK: u64 = 8;

/// The modules in a journal.
pub(super) struct JournalModules(pub Arc<dyn Journal>);

fn unreadable(error: &JournalError) -> AgentError {
    let reason = format!("the uploaded tasks cannot be read: {error}");
    AgentError::new("journal", Failure::Overloaded, reason)
}

impl ModuleStore for JournalModules {
    fn current(&self, owner: &str, name: &str) -> Result<Option<String>, AgentError> {
        self.0.uploads().current(owner, name).map_err(|error| unreadable(&error))
    }

    fn tasks(&self, owner: &str) -> Result<Vec<(String, String)>, AgentError> {
        let versions =
            self.0.uploads().versions(Some(owner)).map_err(|error| unreadable(&error))?;
        let current = versions.into_iter().filter(|version| version.released_ms.is_none());
        Ok(current.map(|version| (version.name, version.digest)).collect())
    }

    fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, AgentError> {
        self.0.uploads().module(digest).map_err(|error| unreadable(&error))
    }
}

/// Why a module was not taken.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The configuration does not allow uploads.
    #[error("nobody may upload tasks here (uploads.key_tasks_max is 0)")]
    Off,
    /// The module cannot be used; with the reason.
    #[error("the module cannot be used: {0}")]
    Module(String),
    /// The task may not have this name; with the reason.
    #[error("{0}")]
    Name(String),
    /// A configured task has this name.
    #[error("`{0}` is a task of this daemon's configuration: give the task another name")]
    Configured(String),
    /// The owner has as many tasks or bytes as it may have; with the limit.
    #[error("{0}")]
    Full(String),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A version that a client has uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// The version, as the journal keeps it.
    pub version: TaskVersion,
    /// True if it replaces another version, or is the first one.
    pub is_new: bool,
}

impl Runs {
    /// The limits of an owner.
    fn upload_limits(&self) -> UploadLimits {
        let app = self.app();
        let uploads = &app.settings().uploads;
        let tasks_max = u64::from(uploads.key_tasks_max);
        UploadLimits {
            tasks_max,
            versions_max: tasks_max * VERSIONS_PER_TASK,
            bytes_max: uploads.key_bytes_max,
        }
    }

    /// Takes a module as a task of this owner, under the name that it declares unless another one
    /// is given. It is checked first, which takes as long as the fuel of five answers lasts. A
    /// module under the name of one of the owner's tasks is a new version of that.
    ///
    /// # Errors
    /// What is wrong with the module or its name, or why there is no room for it.
    pub async fn upload(
        &self,
        owner: &str,
        name: Option<String>,
        module: Vec<u8>,
    ) -> Result<Uploaded, UploadError> {
        let limits = self.upload_limits();
        if limits.tasks_max == 0 {
            return Err(UploadError::Off);
        }
        let app = self.app();
        // This comes before the module is compiled.
        if let Some(name) = &name {
            check_name(name, |name| app.tasks().is_configured(name))?;
        }

        let may_use = uploaded_limits(&app.settings().uploads);
        let checked = tokio::task::spawn_blocking(move || {
            let declared = probe_module(&module, &may_use);
            (declared, format!("{:x}", Sha256::digest(&module)), module)
        });
        let (declared, digest, module) = checked.await.map_err(|_| {
            UploadError::Module("it could not be checked: please report it".to_owned())
        })?;
        let declared = declared.map_err(UploadError::Module)?;
        let name = match name {
            Some(name) => name,
            None => {
                check_name(&declared, |name| app.tasks().is_configured(name))?;
                declared
            }
        };

        // A reload may have configured a task of this name meanwhile.
        check_name(&name, |name| self.app().tasks().is_configured(name))?;

        let version = TaskVersion {
            owner: owner.to_owned(),
            name,
            digest,
            bytes: module.len() as u64,
            uploaded_ms: self.store().now_ms(),
            released_ms: None,
        };
        let stored = {
            let version = version.clone();
            let store =
                move |journal: &dyn Journal| journal.uploads().store(&version, &module, &limits);
            self.store().read(store).await?
        };
        match stored {
            Stored::New => Ok(Uploaded { version, is_new: true }),
            Stored::Known => {
                let known = self.task_versions(owner).await?.into_iter();
                let known = known
                    .filter(|known| known.name == version.name && known.released_ms.is_none())
                    .find(|known| known.digest == version.digest);
                Ok(Uploaded { version: known.unwrap_or(version), is_new: false })
            }
            Stored::TooManyTasks(tasks) => Err(UploadError::Full(format!(
                "{tasks} tasks are uploaded with this key, and it may have {} \
                 (uploads.key_tasks_max): delete one with DELETE /v1/tasks/NAME",
                limits.tasks_max
            ))),
            Stored::TooManyVersions(versions) => Err(UploadError::Full(format!(
                "{versions} versions of this key's tasks are stored, and it may have {}: earlier \
                 ones are removed an hour after they were replaced, when no open run uses them",
                limits.versions_max
            ))),
            Stored::TooManyBytes(bytes) => Err(UploadError::Full(format!(
                "the modules of this key have {bytes} bytes, this one has {}, and together they may \
                 have {} (uploads.key_bytes_max): delete a task; earlier versions are removed an \
                 hour after they were replaced, when no open run uses them",
                version.bytes, limits.bytes_max
            ))),
        }
    }

    /// Removes a task of this owner; open runs keep its module. Returns whether there was one.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn delete_task(&self, owner: &str, name: &str) -> Result<bool, RunError> {
        let (owner, name, now_ms) = (owner.to_owned(), name.to_owned(), self.store().now_ms());
        self.store().read(move |journal| journal.uploads().release(&owner, &name, now_ms)).await
    }

    /// The versions of an owner's tasks, by name, the current one of each first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn task_versions(&self, owner: &str) -> Result<Vec<TaskVersion>, RunError> {
        let owner = owner.to_owned();
        self.store().read(move |journal| journal.uploads().versions(Some(&owner))).await
    }

    /// A sentence for each uploaded task that cannot be run, because a configured one has its name.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn hidden_tasks(&self) -> Result<Vec<String>, RunError> {
        let versions = self.store().read(|journal| journal.uploads().versions(None)).await?;
        let app = self.app();
        let hidden = versions.into_iter().filter(|version| {
            version.released_ms.is_none() && app.tasks().is_configured(&version.name)
        });
        let sentence = |TaskVersion { owner, name, .. }| {
            let of =
                if owner.is_empty() { String::new() } else { format!(" of the key `{owner}`") };
            format!(
                "the configured task `{name}` hides the uploaded task{of} of this name, which \
                 cannot be run: give `tasks.{name}` another name, or upload the module under \
                 another one and delete this one with DELETE /v1/tasks/{name}"
            )
        };
        Ok(hidden.map(sentence).collect())
    }

    /// Removes versions that were released long enough ago and that no open run uses.
    pub(super) async fn collect_versions(&self, now_ms: u64) -> Result<u64, RunError> {
        let before = now_ms.saturating_sub(RELEASED_STAYS_MS);
        self.store().read(move |journal| journal.uploads().collect_versions(before)).await
    }
}

fn check_name(name: &str, is_configured: impl Fn(&str) -> bool) -> Result<(), UploadError> {
    if let Some(fault) = name_fault(name) {
        return Err(UploadError::Name(fault));
    }
    if is_configured(name) {
        return Err(UploadError::Configured(name.to_owned()));
    }
    Ok(())
}
