//! A tree of directories and files with owners and rights, and the walk along a path.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::action::LineField;
use crate::tasks::action_macros::words;
use crate::tasks::pattern::Fields;

words!(
    /// The users who give commands and own entries.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum User {
        /// May do everything.
        Root = "root",
        /// A user bound by the rights of entries.
        Alice = "alice",
        /// Another such user.
        Bob = "bob",
    }
);

impl User {
    /// All users.
    pub const ALL: [Self; 3] = [Self::Root, Self::Alice, Self::Bob];
}

/// The bits of a right.
pub const READ: u8 = 4;
/// The bit of the right to write.
pub const WRITE: u8 = 2;
/// The bit of the right to enter a directory.
pub const ENTER: u8 = 1;

/// The rights of the owner and of others, an octal digit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u8, pub u8);

impl LineField for Mode {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        let [owner, others] = *fields.text(index)?.as_bytes() else { return None };
        Some(Self(owner - b'0', others - b'0'))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

words!(
    /// Why a command fails.
    pub enum Code {
        /// There is no such entry.
        Noent = "noent",
        /// A file where a directory is needed.
        Notdir = "notdir",
        /// A directory where a file is needed.
        Isdir = "isdir",
        /// The entry exists already.
        Exists = "exists",
        /// The user lacks a right.
        Perm = "perm",
        /// The directory has entries.
        Notempty = "notempty",
        /// It is the working directory.
        Busy = "busy",
    }
);

/// An absolute path without `.` and `..`: `/`, `/a`, `/a/b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Arc<str>);

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|path| Self(path.into()))
    }
}

impl Path {
    /// Returns whether a client's path is `/`, or names that each follow a slash.
    pub fn is_absolute(&self) -> bool {
        self.is_root()
            || self
                .0
                .strip_prefix('/')
                .is_some_and(|names| names.split('/').all(|name| !name.is_empty()))
    }

    /// The path `/`.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that holds this entry; that of `/` is `/`.
    pub fn parent(&self) -> &str {
        parent(&self.0)
    }

    /// The path of an entry of this directory.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let directory = if self.is_root() { "" } else { &self.0 };
        Self(format!("{directory}/{name}").into())
    }

    /// Returns whether this is `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }
}

impl From<&str> for Path {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((directory, _)) => directory,
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file.
    File,
}

/// A file or a directory.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path, by which entries are told apart.
    pub path: Path,
    /// Directory or file.
    pub kind: Kind,
    /// The user who made it.
    pub owner: User,
    /// Rights of the owner and of the others.
    pub mode: Mode,
    /// A file's number; 0 for a directory.
    pub content: usize,
}

impl Entry {
    /// A new entry as `mkdir` and `touch` make it.
    pub fn new(path: Path, kind: Kind, owner: User) -> Self {
        let mode = if kind == Kind::Directory { Mode(7, 5) } else { Mode(6, 4) };
        Self { path, kind, owner, mode, content: 0 }
    }

    /// Returns whether the user has the right; root has every right.
    pub fn allows(&self, user: User, right: u8) -> bool {
        let rights = if user == self.owner { self.mode.0 } else { self.mode.1 };
        user == User::Root || rights & right != 0
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (path, kind, owner, mode, content): (Path, String, User, String, usize) =
            Deserialize::deserialize(deserializer)?;

        let kind = match kind.as_str() {
            "d" => Kind::Directory,
            "f" => Kind::File,
            _ => {
                return Err(serde::de::Error::custom(format!(
                    "{kind:?} is not a kind: \"d\" or \"f\""
                )));
            }
        };

        match *mode.as_bytes() {
            [user @ b'0'..=b'7', others @ b'0'..=b'7'] => {
                Ok(Self { path, kind, owner, mode: Mode(user - b'0', others - b'0'), content })
            }
            _ => Err(serde::de::Error::custom(format!("{mode:?} is not a mode, such as \"75\""))),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = if self.kind == Kind::Directory { "d" } else { "f" };
        (&self.path, kind, self.owner, format_args!("{}", self.mode), self.content)
            .serialize(serializer)
    }
}

/// The entries, sorted by their paths as lists of components: a directory comes before what it
/// holds. After wrong lines an entry may have lost its directory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree(Vec<Entry>);

impl Default for Tree {
    /// The directory `/` alone.
    fn default() -> Self {
        let root =
            Entry { mode: Mode(7, 7), ..Entry::new(Path::root(), Kind::Directory, User::Root) };
        Self(vec![root])
    }
}

impl Tree {
    /// Returns whether a client's entries have absolute paths, in the order in which they are
    /// looked up, each once.
    pub fn is_ordered(&self) -> bool {
        let names =
            |entry: &Entry| entry.path.as_str().split('/').map(str::to_owned).collect::<Vec<_>>();
        self.0.iter().all(|entry| entry.path.is_absolute())
            && self.0.is_sorted_by(|a, b| names(a) < names(b))
    }

    /// The entries, sorted by the components of their paths.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|entry| entry.path.as_str().split('/').cmp(path.split('/')))
    }

    /// The entry at a path.
    pub fn find(&self, path: &str) -> Option<&Entry> {
        self.place(path).ok().map(|place| &self.0[place])
    }

    /// The entry at a path, to change it.
    pub fn find_mut(&mut self, path: &Path) -> Option<&mut Entry> {
        self.place(path.as_str()).ok().map(|place| &mut self.0[place])
    }

    /// Adds an entry at a path that is free.
    pub fn insert(&mut self, entry: Entry) {
        if let Err(place) = self.place(entry.path.as_str()) {
            self.0.insert(place, entry);
        }
    }

    /// Removes just this entry, not what lies below it.
    pub fn remove(&mut self, path: &Path) {
        if let Ok(place) = self.place(path.as_str()) {
            self.0.remove(place);
        }
    }

    /// Returns whether some entry lies directly in the directory.
    pub fn holds_entries(&self, directory: &Path) -> bool {
        self.0
            .iter()
            .any(|entry| !entry.path.is_root() && entry.path.parent() == directory.as_str())
    }

    /// The directory at a path, checked as every component of a walk is; without a user, rights are
    /// not looked at.
    pub fn enter(&self, path: &Path, user: Option<User>) -> Result<&Entry, Code> {
        // Only a wrong line can remove the working directory.
        let entry = self.find(path.as_str()).ok_or(Code::Noent)?;

        if entry.kind != Kind::Directory {
            return Err(Code::Notdir);
        }
        if user.is_some_and(|user| !entry.allows(user, ENTER)) {
            return Err(Code::Perm);
        }
        Ok(entry)
    }

    /// The target of a written path.
    pub fn walk(&self, from: &Path, written: &str, user: Option<User>) -> Result<Path, Code> {
        let mut at = if written.starts_with('/') { Path::root() } else { from.clone() };
        for component in written.split('/').filter(|component| !component.is_empty()) {
            self.enter(&at, user)?;
            match component {
                "." => {}
                ".." => at = at.parent().into(),
                name => {
                    at = at.join(name);
                    self.find(at.as_str()).ok_or(Code::Noent)?;
                }
            }
        }

        Ok(at)
    }

    /// Returns whether `/` exists and every entry's parent is a directory that exists.
    pub fn is_whole(&self) -> bool {
        // By the order of the entries, the parent of one is among the directories above the one
        // before it.
        let mut above: Vec<&Entry> = Vec::new();

        for entry in &self.0 {
            if !entry.path.is_root() {
                while above
                    .last()
                    .is_some_and(|directory| directory.path.as_str() != entry.path.parent())
                {
                    above.pop();
                }
                if above.last().is_none_or(|parent| parent.kind != Kind::Directory) {
                    return false;
                }
            }
            above.push(entry);
        }

        self.0.first().is_some_and(|entry| entry.path.is_root())
    }

    /// The stretches in which two trees differ: what is left of each without their common beginning
    /// and end.
    pub fn differences<'a>(&'a self, other: &'a Self) -> (&'a [Entry], &'a [Entry]) {
        let start = self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count();
        let (a, b) = (&self.0[start..], &other.0[start..]);
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        (&a[..a.len() - end], &b[..b.len() - end])
    }
}
