//! A file that a command writes: it is there when it is whole, or stays as it was.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// See the module.
#[derive(Debug)]
pub struct Target {
    option: &'static str,
    path: PathBuf,
    /// Written to first; none for devices and pipes, which are written to as they are.
    part: Option<PathBuf>,
}

impl Target {
    /// A file that can be written. Looked at before the work whose result it takes.
    ///
    /// # Errors
    /// With the option and what is wrong with its file.
    pub fn check(option: &'static str, path: &Path) -> anyhow::Result<Self> {
        let target = |part| Self { option, path: path.to_owned(), part };
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                bail!("{option} {}: is a folder: give the name of a file in it", path.display())
            }
            Ok(metadata) if !metadata.is_file() => return Ok(target(None)),
            _ => {}
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let failed = || format!("{option} {}: cannot be written: is its folder there?", path.display());
        drop(File::create(&part).with_context(failed)?);
        std::fs::remove_file(&part).with_context(failed)?;
        Ok(target(Some(part)))
    }

    /// Whether both are one file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.part.is_some() && self.path == other.path
    }

    /// The option that named it.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// # Errors
    /// With the option and its file; what was there before is still there.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let Self { option, path, part } = self;
        let written = match part {
            Some(part) => {
                let renamed = std::fs::write(part, text).and_then(|()| std::fs::rename(part, path));
                // What is left of it is of no use, and whether it can be removed changes nothing.
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
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        std::fs::write(&path, "before").unwrap();
        let target = Target::check("--html", &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        target.write("after").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
        Target::check("--html", Path::new("/dev/null")).unwrap().write("x").unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_said_before() {
        let folder = tempfile::tempdir().unwrap();
        for (path, part) in [(folder.path().to_owned(), "is a folder"), (folder.path().join("no/x"), "is its folder")] {
            let error = format!("{:#}", Target::check("--raw", &path).unwrap_err());
            assert!(error.contains("--raw") && error.contains(part), "{error}");
        }
    }
}
