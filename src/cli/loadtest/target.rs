//! A file that is replaced atomically, and checked before the work whose result it takes.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

#[derive(Debug)]
pub struct Target {
    option: &'static str,
    path: PathBuf,
    /// Written first, then renamed. `None` for devices and pipes, which are written directly.
    part: Option<PathBuf>,
}

impl Target {
    /// Checks that a file can be written. Errors name the option.
    pub fn check(option: &'static str, path: &Path) -> anyhow::Result<Self> {
        let target = |part| Self { option, path: path.to_owned(), part };
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                bail!("{option} {}: is a folder: name a file in it", path.display())
            }
            Ok(metadata) if !metadata.is_file() => return Ok(target(None)),
            _ => {}
        }

        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);

        let failed =
            || format!("{option} {}: cannot be written: does its folder exist?", path.display());
        // The rename at the end needs a folder that can be written, not only a file.
        drop(File::create(&part).with_context(failed)?);
        std::fs::remove_file(&part).with_context(failed)?;

        Ok(target(Some(part)))
    }

    /// Whether both name the same file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.part.is_some() && self.path == other.path
    }

    /// The option that named it.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// Replaces the file, which stays as it was on an error.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let Self { option, path, part } = self;
        let written = match part {
            Some(part) => {
                let renamed = std::fs::write(part, text).and_then(|()| std::fs::rename(part, path));
                // Best effort: the partial file is useless.
                renamed.inspect_err(|_| drop(std::fs::remove_file(part)))
            }
            None => std::fs::write(path, text),
        };
        written.with_context(|| format!("{option} {}: cannot be written", path.display()))
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
