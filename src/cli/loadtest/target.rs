//! A file that is replaced atomically, and checked before the work whose result it takes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use prime_dataset::files::Whole;

#[derive(Debug)]
pub struct Target {
    option: &'static str,
    path: PathBuf,
    /// Not a device or a pipe, which two options may share.
    is_file: bool,
}

impl Target {
    /// Checks that a file can be written. Errors name the option.
    pub fn check(option: &'static str, path: &Path) -> anyhow::Result<Self> {
        let target = |is_file| Self { option, path: path.to_owned(), is_file };
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                bail!("{option} {}: is a folder: name a file in it", path.display())
            }
            Ok(metadata) if !metadata.is_file() => return Ok(target(false)),
            _ => {}
        }

        let failed =
            || format!("{option} {}: cannot be written: does its folder exist?", path.display());
        // What is not finished leaves nothing.
        drop(Whole::uncompressed(path).with_context(failed)?);
        Ok(target(true))
    }

    /// True if both name the same file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_file && self.path == other.path
    }

    /// The option that named it.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// Replaces the file, which stays as it was on an error.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let Self { option, path, .. } = self;
        let written = Whole::uncompressed(path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.finish()
        });
        written.map(drop).with_context(|| format!("{option} {}: cannot be written", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        std::fs::write(&path, "before").unwrap();

        let target = Target::check("--html", &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");

        target.write("after").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no partial file remains");

        Target::check("--html", Path::new("/dev/null")).unwrap().write("x").unwrap();
    }

    #[test]
    fn unwritable_files_are_found_by_the_check() {
        let folder = tempfile::tempdir().unwrap();
        for (path, part) in [
            (folder.path().to_owned(), "is a folder"),
            (folder.path().join("no/x"), "does its folder exist"),
        ] {
            let error = format!("{:#}", Target::check("--raw", &path).unwrap_err());
            assert!(error.contains("--raw") && error.contains(part), "{error}");
        }
    }
}
