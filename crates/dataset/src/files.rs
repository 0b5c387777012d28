//! Files that appear only when complete, compressed if their name ends in `.zst`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// zstd level: reduces traces to a tenth of their size without slowing down their generation.
const ZSTD_LEVEL: i32 = 3;

/// A file under construction. [`Whole::finish`] gives it its name; without that it leaves no trace,
/// and an older file of that name stays. A name that is a symbolic link stays one: its target is
/// replaced. A device or a pipe is written in place.
pub struct Whole {
    out: Option<Encoder>,
    place: Place,
    content: Sha256,
    bytes: u64,
}

/// Where the bytes are until the file is finished.
enum Place {
    /// In the device or pipe itself.
    Target,
    /// In a file without a name, in the folder of the target.
    Unnamed { target: PathBuf },
    /// In a file beside the target, where the file system does not support unnamed files.
    Beside { target: PathBuf, name: PathBuf },
}

enum Encoder {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

/// What a finished file holds, before compression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Size in bytes.
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The most links that are followed from one name to its target, as in the kernel.
const LINKS_MAX: usize = 40;

/// The file that a name stands for, which need not exist.
fn resolved(name: &Path) -> io::Result<PathBuf> {
    let mut name = name.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&name) {
            Ok(metadata) if metadata.is_symlink() => {
                name = folder_of(&name).join(fs::read_link(&name)?);
            }
            _ => return Ok(name),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Does something under a temporary name beside the target: the first that is free. A file that is
/// there already is somebody else's, and stays.
fn under_free_name<T>(
    target: &Path,
    mut attempt: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let (file, process) = (target.file_name().unwrap_or_default(), std::process::id());
    let mut number = 0_u32;
    loop {
        let mut name = OsString::from(".");
        name.push(file);
        name.push(format!(".{process}.{number}.partial"));
        let name = folder_of(target).join(name);

        match attempt(&name) {
            Ok(done) => return Ok((done, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// An unnamed file that vanishes with the process, if the file system supports it.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // The mode of every new file, before the umask.
    open(folder, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
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
    /// When the folder, or the device or pipe, cannot be written.
    pub fn create(name: &Path) -> io::Result<Self> {
        Self::new(name, name.extension().is_some_and(|extension| extension == "zst"))
    }

    /// Starts a file that is not compressed, whatever its name.
    ///
    /// # Errors
    /// Like [`Whole::create`].
    pub fn uncompressed(name: &Path) -> io::Result<Self> {
        Self::new(name, false)
    }

    fn new(name: &Path, is_compressed: bool) -> io::Result<Self> {
        let target = resolved(name)?;
        let old = match fs::metadata(&target) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };

        let (file, place) = if old.as_ref().is_some_and(|old| !old.is_file()) {
            (File::options().write(true).open(&target)?, Place::Target)
        } else if let Some(file) = unnamed(folder_of(&target)) {
            (file, Place::Unnamed { target })
        } else {
            let make = |name: &Path| File::options().write(true).create_new(true).open(name);
            let (file, name) = under_free_name(&target, make)?;
            (file, Place::Beside { target, name })
        };

        let mut whole = Self { out: None, place, content: Sha256::new(), bytes: 0 };
        if let Some(old) = old.filter(fs::Metadata::is_file) {
            // Before the first byte: what replaces a private file is private from the start.
            file.set_permissions(old.permissions())?;
        }

        let file = BufWriter::with_capacity(1 << 16, file);
        whole.out = Some(if is_compressed {
            Encoder::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL)?)
        } else {
            Encoder::Plain(file)
        });
        Ok(whole)
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

        if !matches!(self.place, Place::Target) {
            // Before it gets its name, which must never stand for half a file, even after a crash.
            file.sync_all()?;
        }

        match &self.place {
            Place::Target => {}
            Place::Unnamed { target } => {
                // A link cannot replace a file; a rename can.
                let ((), name) = under_free_name(target, |name| give_name(&file, name))?;
                let target = target.clone();
                // From here on, it is removed if that fails.
                self.place = Place::Beside { target, name };
                self.rename()?;
            }
            Place::Beside { .. } => self.rename()?,
        }

        let digest = std::mem::take(&mut self.content).finalize();
        Ok(Content { bytes: self.bytes, sha256: format!("{digest:x}") })
    }

    /// Gives a file its target's name.
    fn rename(&mut self) -> io::Result<()> {
        let Place::Beside { target, name } = &self.place else { return Ok(()) };
        fs::rename(name, target)?;
        let folder = folder_of(target).to_owned();
        // Nothing is left to be removed.
        self.place = Place::Target;

        // The rename itself is durable only once the folder is.
        File::open(folder)?.sync_all()
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
        if let Place::Beside { name, .. } = &self.place {
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

    fn replaced(name: &Path, text: &str) {
        let mut file = Whole::create(name).expect("created");
        file.write_all(text.as_bytes()).expect("written");
        file.finish().expect("finished");
    }

    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_link_stays_and_the_mode_of_the_old_file_too() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("data")).expect("made");
        symlink("data/a.jsonl", path("link")).expect("linked");
        symlink(path("link"), path("link to link")).expect("linked");

        // The target is made where the links lead to, and then replaced there.
        for text in ["first", "second"] {
            replaced(&path("link to link"), text);
            assert_eq!(fs::read_to_string(path("data/a.jsonl")).expect("there"), text);
            fs::set_permissions(path("data/a.jsonl"), fs::Permissions::from_mode(0o600))
                .expect("set");
        }
        replaced(&path("link"), "third");
        assert_eq!(mode(&path("data/a.jsonl")), 0o600);
        assert_eq!(names(folder.path()), ["data", "link", "link to link"]);
        assert_eq!(names(&path("data")), ["a.jsonl"]);
        for link in ["link", "link to link"] {
            assert!(fs::symlink_metadata(path(link)).expect("there").is_symlink(), "{link}");
        }

        // A new file has the mode of every other new file.
        fs::write(path("usual"), "").expect("written");
        replaced(&path("new"), "x");
        assert_eq!(mode(&path("new")), mode(&path("usual")));

        symlink("round", path("round")).expect("linked");
        let error = Whole::create(&path("round")).err().expect("a loop");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn files_of_others_beside_it_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let temporary = format!(".a.{}.0.partial", std::process::id());
        for name in ["a.part", "a.partial", &temporary] {
            fs::write(path(name), "mine").expect("written");
        }

        // Two writers at a time work too.
        let (mut first, mut second) = (
            Whole::create(&path("a")).expect("created"),
            Whole::create(&path("a")).expect("created"),
        );
        first.write_all(b"first").expect("written");
        second.write_all(b"second").expect("written");
        second.finish().expect("finished");
        first.finish().expect("finished");

        assert_eq!(fs::read_to_string(path("a")).expect("there"), "first");
        assert_eq!(names(folder.path()), [&temporary, "a", "a.part", "a.partial"]);
        for name in ["a.part", "a.partial", &temporary] {
            assert_eq!(fs::read_to_string(path(name)).expect("there"), "mine", "{name}");
        }
    }

    #[test]
    fn a_pipe_is_written_in_place() {
        use std::io::Read as _;

        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600))
            .expect("made");
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                File::open(pipe).expect("opened").read_to_string(&mut text).expect("read");
                text
            })
        };

        replaced(&pipe, "line\n");
        assert_eq!(reader.join().expect("no panic"), "line\n");
        assert_eq!(names(folder.path()), ["pipe"]);
        assert!(Whole::create(folder.path()).is_err(), "a folder");
    }
}
