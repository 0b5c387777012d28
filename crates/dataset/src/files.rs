//! Files that appear only when complete, compressed if their name ends in `.zst`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// zstd level: reduces traces to a tenth of their size without slowing down their generation.
const ZSTD_LEVEL: i32 = 3;

/// A file under construction. [`Whole::finish`] gives it its name; without that it leaves no trace,
/// and an older file of that name stays.
pub struct Whole {
    out: Option<Encoder>,
    target: PathBuf,
    /// The temporary name, if the file system does not support unnamed files.
    temporary: Option<PathBuf>,
    content: Sha256,
    bytes: u64,
}

enum Encoder {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

/// What a finished file holds, before compression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_name(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    folder_of(target).join(format!(".{name}.{}.partial", std::process::id()))
}

/// An unnamed file that vanishes with the process, if the file system supports it.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    open(folder, flags, Mode::from_raw_mode(0o644)).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn give_name(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, link, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

impl Whole {
    /// Starts a file, compressed if its name ends in `.zst`.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn create(target: &Path) -> io::Result<Self> {
        let (file, temporary) = match unnamed(folder_of(target)) {
            Some(file) => (file, None),
            None => {
                let name = temporary_name(target);
                (File::create(&name)?, Some(name))
            }
        };

        let file = BufWriter::with_capacity(1 << 16, file);
        let out = if target.extension().is_some_and(|extension| extension == "zst") {
            Encoder::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL)?)
        } else {
            Encoder::Plain(file)
        };

        Ok(Self {
            out: Some(out),
            target: target.to_owned(),
            temporary,
            content: Sha256::new(),
            bytes: 0,
        })
    }

    /// Makes the file durable and gives it its name, replacing an older file.
    ///
    /// # Errors
    /// When the rest cannot be written or the name cannot be given.
    pub fn finish(mut self) -> io::Result<Content> {
        let file = match self.out.take().expect("invariant: taken here alone") {
            Encoder::Plain(file) => file,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;

        // Before it gets its name, which must never stand for half a file, even after a crash.
        file.sync_all()?;

        let name = match self.temporary.take() {
            Some(name) => name,
            None => {
                // A link cannot replace a file; a rename can.
                let name = temporary_name(&self.target);
                // Left behind by a killed process that had the same id.
                drop(fs::remove_file(&name));
                give_name(&file, &name)?;
                name
            }
        };

        if let Err(error) = fs::rename(&name, &self.target) {
            drop(fs::remove_file(&name));
            return Err(error);
        }

        // The rename itself is durable only once the folder is.
        File::open(folder_of(&self.target))?.sync_all()?;

        let digest = std::mem::take(&mut self.content).finalize();
        Ok(Content { bytes: self.bytes, sha256: format!("{digest:x}") })
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.out.as_mut().expect("invariant: there until it is finished") {
            Encoder::Plain(file) => file.write(bytes)?,
            Encoder::Zstd(encoder) => encoder.write(bytes)?,
        };
        // The digest is of the content before compression.
        self.content.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.out.as_mut().expect("invariant: there until it is finished") {
            Encoder::Plain(file) => file.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            drop(fs::remove_file(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a.jsonl");
        let mut file = Whole::create(&target).expect("created");
        file.write_all(b"half").expect("written");
        file.flush().expect("written");
        drop(file);
        assert!(names(folder.path()).is_empty(), "what is not finished leaves nothing");

        fs::write(&target, "old").expect("written");
        let mut file = Whole::create(&target).expect("created");

        file.write_all(b"abc").expect("written");
        assert_eq!(
            fs::read(&target).expect("there"),
            b"old",
            "until it is finished the old one stays"
        );

        let content = file.finish().expect("finished");
        assert_eq!(fs::read(&target).expect("there"), b"abc");
        assert_eq!(names(folder.path()), ["a.jsonl"]);
        assert_eq!(content.bytes, 3);
        assert_eq!(
            content.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_name_that_ends_in_zst_is_compressed() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a.jsonl.zst");
        let mut file = Whole::create(&target).expect("created");
        (0..1000).for_each(|_| file.write_all(b"cmp 0 1\n").expect("written"));
        assert_eq!(file.finish().expect("finished").bytes, 8000);

        let stored = fs::read(&target).expect("there");
        assert!(stored.len() < 1000);
        assert_eq!(zstd::decode_all(&stored[..]).expect("zstd").len(), 8000);
    }
}
