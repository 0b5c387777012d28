//! Built-in models as files. Engines load models from files, so each is written to a private cache
//! once and verified on every use.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::BuiltInModel;

/// A built-in model could not be written to any cache folder.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write a built-in model to {}: {cause}; set XDG_CACHE_HOME to a writable folder, or `model` of this engine \
     to a GGUF file",
    folder.display()
)]
pub struct CacheError {
    /// The last folder that was tried.
    folder: PathBuf,
    cause: io::Error,
}

impl BuiltInModel {
    /// A file with the model: below the user's cache folder or, failing that, the folder for
    /// temporary files.
    ///
    /// # Errors
    /// Neither folder is private to this user and writable.
    pub fn file(&self) -> Result<PathBuf, CacheError> {
        let variable = |name: &str| {
            std::env::vars_os().find(|(known, _)| known == name).map(|(_, value)| value.into())
        };
        file_in(self, &folders(variable))
    }
}

/// Folders to try, in order.
fn folders(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let cache =
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));

    let user = rustix::process::getuid().as_raw();
    let cache =
        cache.filter(|folder| folder.is_absolute()).map(|folder| folder.join("prime-agents"));
    cache.into_iter().chain([std::env::temp_dir().join(format!("prime-agents-{user}"))]).collect()
}

fn file_in(model: &BuiltInModel, folders: &[PathBuf]) -> Result<PathBuf, CacheError> {
    let mut last = None;
    for folder in folders {
        match cached(model, folder) {
            Ok(path) => return Ok(path),
            Err(cause) => last = Some(CacheError { folder: folder.clone(), cause }),
        }
    }
    Err(last.expect("invariant: there is always a folder for temporary files"))
}

/// The model's file in this folder, written if it is missing or damaged.
fn cached(model: &BuiltInModel, folder: &Path) -> io::Result<PathBuf> {
    let BuiltInModel { name, bytes, .. } = *model;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_private(folder)?;

    // The digest is a part of the name, so that versions of the program do not overwrite each
    // other.
    let digest = &format!("{:x}", Sha256::digest(bytes))[..16];
    let path = folder.join(format!("{name}-{digest}.gguf"));

    if std::fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    // Other processes may be loading the file: it is replaced as a whole, never modified.
    // The process's number keeps two processes from writing to the same file.
    let part = folder.join(format!("{name}-{digest}.{}.part", std::process::id()));
    let written = write(&part, bytes).and_then(|()| std::fs::rename(&part, &path));
    if written.is_err() {
        drop(std::fs::remove_file(&part));
    }

    written.map(|()| path)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A process with the same id that was killed may have left one.
    drop(std::fs::remove_file(path));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Checks that only this user can write to the folder. Otherwise the file could be exchanged after
/// it was verified.
fn check_private(folder: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(folder)?;
    if metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0
    {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users can write to this folder"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::BUILT_IN_MODELS;

    const MODEL: &BuiltInModel = &BUILT_IN_MODELS[0];

    #[test]
    fn the_file_is_private_verified_and_repaired() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        let path = file_in(MODEL, std::slice::from_ref(&folder)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), MODEL.bytes);

        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);

        let inode = std::fs::metadata(&path).unwrap().ino();
        assert_eq!(file_in(MODEL, std::slice::from_ref(&folder)).unwrap(), path);
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode, "an intact file is kept");
        std::fs::write(&path, &MODEL.bytes[..100]).unwrap();

        assert_eq!(file_in(MODEL, std::slice::from_ref(&folder)).unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), MODEL.bytes);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary files are left");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_skipped() {
        let home = tempfile::tempdir().unwrap();
        let (open, private) = (home.path().join("open"), home.path().join("private"));

        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&open, &link).unwrap();

        assert!(
            file_in(MODEL, &[open.clone(), link.clone(), private.clone()])
                .unwrap()
                .starts_with(&private)
        );

        let error = file_in(MODEL, &[open, link]).unwrap_err().to_string();
        assert!(
            error.contains("other users can write") && error.contains("XDG_CACHE_HOME"),
            "{error}"
        );
    }

    #[test]
    fn the_cache_folder_comes_before_temporary_files() {
        let with = |known: &'static [(&str, &str)]| {
            folders(move |name| {
                known.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        assert_eq!(with(&[("HOME", "/h")])[0], Path::new("/h/.cache/prime-agents"));
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")])[0],
            Path::new("/c/prime-agents")
        );
        assert_eq!(with(&[("XDG_CACHE_HOME", "relative")]).len(), 1);
        assert!(with(&[])[0].starts_with(std::env::temp_dir()));
    }
}
