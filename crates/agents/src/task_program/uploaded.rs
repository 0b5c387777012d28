//! Modules that clients have uploaded: where they are stored, and which of them are compiled.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::limits::{COMPILED_KEPT_BYTES_MAX, COMPILED_KEPT_MAX};
use super::module::{ModuleLimits, ModulePool};
use super::program::TaskProgram;
use super::workers::Workers;
use crate::{AgentError, Failure};

/// Where uploaded modules are kept. Its methods block.
pub trait ModuleStore: Send + Sync {
    /// The digest of the module that this task of an owner has at present.
    ///
    /// # Errors
    /// It cannot be read.
    fn current(&self, owner: &str, name: &str) -> Result<Option<String>, AgentError>;

    /// The tasks of an owner, with their digests.
    ///
    /// # Errors
    /// They cannot be read.
    fn tasks(&self, owner: &str) -> Result<Vec<(String, String)>, AgentError>;

    /// The module of this digest.
    ///
    /// # Errors
    /// It cannot be read.
    fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, AgentError>;
}

/// The resources that uploaded modules may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadedLimits {
    /// Maximum fuel of an answer, about one unit per instruction.
    pub fuel_max: u64,
    /// Maximum bytes of a module's memory.
    pub memory_bytes_max: u64,
    /// Maximum bytes of an answer.
    pub line_bytes_max: u64,
    /// Number of threads that compute the answers of all of them.
    pub threads: u32,
}

impl UploadedLimits {
    pub(super) fn of_module(&self) -> ModuleLimits {
        let Self { fuel_max, memory_bytes_max, line_bytes_max, .. } = *self;
        ModuleLimits { fuel_max, memory_bytes_max, line_bytes_max, is_foreign: true }
    }
}

/// A module, and how to start it.
pub(super) struct UploadedModule {
    pub digest: String,
    store: Arc<dyn ModuleStore>,
    limits: ModuleLimits,
    workers: Arc<Workers>,
    kept: Arc<Mutex<Kept>>,
}

impl UploadedModule {
    /// Reads and compiles it.
    pub fn start(&self, name: &str) -> Result<ModulePool, AgentError> {
        let Self { digest, store, limits, workers, kept } = self;
        let gone = || {
            let reason = format!(
                "its module with the digest {digest} is gone: no task has this version, and no \
                 other open run; upload it again"
            );
            AgentError::new(format!("task `{name}`"), Failure::Refused, reason)
        };
        let bytes = store.module(digest)?.ok_or_else(gone)?;
        lock(kept).grow(name, digest, bytes.len());
        ModulePool::start(name, &bytes, *limits, Arc::clone(workers))
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A module that stays compiled.
struct Recent {
    task: Arc<TaskProgram>,
    name: String,
    /// Bytes of the module, once it was read.
    bytes: usize,
}

#[derive(Default)]
struct Kept {
    /// The modules in use.
    known: BTreeMap<(String, String), Weak<TaskProgram>>,
    /// Recently used modules, the latest at the end.
    recent: VecDeque<Recent>,
}

impl Kept {
    fn is(recent: &Recent, name: &str, digest: &str) -> bool {
        recent.name == name && recent.task.uploaded_digest() == Some(digest)
    }

    fn find(&mut self, name: &str, digest: &str) -> Option<Arc<TaskProgram>> {
        let task = self.known.get(&(name.to_owned(), digest.to_owned()))?.upgrade()?;
        let at = self.recent.iter().position(|recent| Self::is(recent, name, digest));
        // One that is in use may have been pushed out before; its size is counted anew.
        let bytes = at.and_then(|at| self.recent.remove(at)).map_or(0, |recent| recent.bytes);
        self.recent.push_back(Recent { task: Arc::clone(&task), name: name.to_owned(), bytes });
        Some(task)
    }

    fn add(&mut self, name: &str, digest: &str, task: &Arc<TaskProgram>) {
        self.known.retain(|_, task| task.strong_count() > 0);
        self.known.insert((name.to_owned(), digest.to_owned()), Arc::downgrade(task));
        self.recent.push_back(Recent { task: Arc::clone(task), name: name.to_owned(), bytes: 0 });
    }

    fn grow(&mut self, name: &str, digest: &str, bytes: usize) {
        if let Some(recent) = self.recent.iter_mut().find(|one| Self::is(one, name, digest)) {
            recent.bytes = bytes;
        }
    }

    /// Removes the modules that exceed the limits, except for the one that was used last.
    fn shrink(&mut self) -> Vec<Arc<TaskProgram>> {
        let mut out = Vec::new();
        let mut bytes: usize = self.recent.iter().map(|recent| recent.bytes).sum();
        while self.recent.len() > 1
            && (self.recent.len() > COMPILED_KEPT_MAX || bytes > COMPILED_KEPT_BYTES_MAX)
            && let Some(first) = self.recent.pop_front()
        {
            bytes -= first.bytes;
            out.push(first.task);
        }
        out
    }
}

/// The uploaded modules that are compiled: those in use, and some that were used last.
#[derive(Default)]
pub(super) struct Compiled {
    kept: Arc<Mutex<Kept>>,
    limits: Mutex<Option<UploadedLimits>>,
    workers: Mutex<Option<Arc<Workers>>>,
}

impl Compiled {
    pub fn limit(&self, limits: UploadedLimits) {
        let old = self.limits.lock().unwrap_or_else(PoisonError::into_inner).replace(limits);
        if old.is_some_and(|old| old != limits) {
            // Those in use keep what they began with.
            let old = std::mem::take(&mut *lock(&self.kept));
            drop(old);
        }
    }

    fn workers(&self, threads: u32) -> Arc<Workers> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        match &*workers {
            Some(known) if known.threads() == threads => Arc::clone(known),
            _ => {
                // One thread is left to the others, if there are several.
                let share = threads.saturating_sub(1).max(1);
                let new = Arc::new(Workers::start("uploaded", threads, share));
                *workers = Some(Arc::clone(&new));
                new
            }
        }
    }

    /// The task of this name whose module has this digest.
    pub fn get(&self, name: &str, digest: &str, store: &Arc<dyn ModuleStore>) -> Arc<TaskProgram> {
        if let Some(known) = lock(&self.kept).find(name, digest) {
            return known;
        }

        let limits = *self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = limits.unwrap_or(UploadedLimits {
            fuel_max: 0,
            memory_bytes_max: 0,
            line_bytes_max: 0,
            threads: 1,
        });
        let module = UploadedModule {
            digest: digest.to_owned(),
            store: Arc::clone(store),
            limits: limits.of_module(),
            workers: self.workers(limits.threads),
            kept: Arc::clone(&self.kept),
        };
        let task = Arc::new(TaskProgram::uploaded(name, module));

        let mut kept = lock(&self.kept);
        // Another thread may have been faster.
        if let Some(known) = kept.find(name, digest) {
            return known;
        }
        kept.add(name, digest, &task);
        let out = kept.shrink();
        drop(kept);
        // Unlocked first: compiled modules are freed here.
        drop(out);
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules that are all the same text, which is not a module; counts how often one is read.
    #[derive(Default)]
    struct Texts {
        read: Mutex<Vec<String>>,
    }

    impl ModuleStore for Texts {
        fn current(&self, _: &str, _: &str) -> Result<Option<String>, AgentError> {
            Ok(None)
        }

        fn tasks(&self, _: &str) -> Result<Vec<(String, String)>, AgentError> {
            Ok(Vec::new())
        }

        fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, AgentError> {
            self.read.lock().expect("no panic").push(digest.to_owned());
            Ok((digest != "gone").then(|| vec![0; 40 << 20]))
        }
    }

    fn digests(compiled: &Compiled) -> Vec<String> {
        let kept = lock(&compiled.kept);
        kept.recent.iter().filter_map(|one| one.task.uploaded_digest().map(str::to_owned)).collect()
    }

    #[test]
    fn a_module_is_shared_by_those_who_use_it_and_kept_for_the_next() {
        let store: Arc<dyn ModuleStore> = Arc::new(Texts::default());
        let compiled = Compiled::default();
        let one = compiled.get("count", "a", &store);
        assert!(Arc::ptr_eq(&one, &compiled.get("count", "a", &store)));
        // The name is part of what its answers are about.
        assert!(!Arc::ptr_eq(&one, &compiled.get("other", "a", &store)));

        for at in 0..COMPILED_KEPT_MAX {
            compiled.get("count", &format!("{at}"), &store);
        }
        let kept = digests(&compiled);
        assert_eq!((kept.len(), kept[0].as_str()), (COMPILED_KEPT_MAX, "0"));
        // The module is no longer kept, but still in use.
        assert!(Arc::ptr_eq(&one, &compiled.get("count", "a", &store)));
        assert_eq!(digests(&compiled).len(), COMPILED_KEPT_MAX + 1);
        compiled.get("count", "new", &store);
        assert_eq!(digests(&compiled).len(), COMPILED_KEPT_MAX);
    }

    #[test]
    fn the_bytes_of_what_is_kept_are_limited() {
        let texts = Arc::new(Texts::default());
        let store = Arc::clone(&texts) as Arc<dyn ModuleStore>;
        let compiled = Compiled::default();
        let start = |digest: &str| {
            let module = UploadedModule {
                digest: digest.to_owned(),
                store: Arc::clone(&store),
                limits: ModuleLimits {
                    fuel_max: 1,
                    memory_bytes_max: 1,
                    line_bytes_max: 1,
                    is_foreign: true,
                },
                workers: compiled.workers(1),
                kept: Arc::clone(&compiled.kept),
            };
            drop(compiled.get("count", digest, &store));
            module.start("count").err().expect("no module").to_string()
        };

        assert!(start("a").contains("a module has at most"));
        assert!(start("b").contains("a module has at most"));
        assert_eq!(*texts.read.lock().expect("no panic"), ["a", "b"]);
        // Each has 40 MiB, and both have more than 64.
        compiled.get("count", "c", &store);
        assert_eq!(digests(&compiled), ["b", "c"]);
        assert!(start("gone").contains("its module with the digest gone is gone"));
    }
}
