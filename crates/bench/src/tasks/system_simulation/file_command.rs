//! Commands of the simulated file system: their text, and how random ones are drawn.

use super::file_tree::{Code, Kind, Mode, Path, Tree, User};
use crate::tasks::TaskRng;
use crate::tasks::action_macros::line_actions;
use crate::tasks::operation::as_text;

line_actions! {
    /// A command.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Command {
        /// Become this user.
        Su(user: User) = "su <root|alice|bob>", "su {user}";
        /// Make this the working directory.
        Cd(path: String) = "cd <[!-~]+>", "cd {path}";
        /// Make a directory.
        Mkdir(path: String) = "mkdir <[!-~]+>", "mkdir {path}";
        /// Make an empty file unless there is one.
        Touch(path: String) = "touch <[!-~]+>", "touch {path}";
        /// Set a file's content, one number.
        Write(path: String, content: usize) = "write <[!-~]+> <nat>", "write {path} {content}";
        /// Read a file.
        Read(path: String) = "read <[!-~]+>", "read {path}";
        /// Remove a file.
        Rm(path: String) = "rm <[!-~]+>", "rm {path}";
        /// Remove an empty directory.
        Rmdir(path: String) = "rmdir <[!-~]+>", "rmdir {path}";
        /// Set an entry's rights.
        Chmod(mode: Mode, path: String) = "chmod <[0-7]{2}> <[!-~]+>", "chmod {mode} {path}";
    }
}

as_text!(Command);

impl Command {
    /// The command's path; `None` for `su`.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Su(_) => None,
            Self::Cd(path)
            | Self::Mkdir(path)
            | Self::Touch(path)
            | Self::Write(path, _)
            | Self::Read(path)
            | Self::Rm(path)
            | Self::Rmdir(path)
            | Self::Chmod(_, path) => Some(path),
        }
    }

    /// Returns whether some tree makes the command fail with this code.
    pub fn can_fail_with(&self, code: Code) -> bool {
        match code {
            Code::Exists => matches!(self, Self::Mkdir(_) | Self::Touch(_)),
            Code::Isdir => matches!(self, Self::Write(..) | Self::Read(_) | Self::Rm(_)),
            Code::Notempty | Code::Busy => matches!(self, Self::Rmdir(_)),
            Code::Noent | Code::Notdir | Code::Perm => self.path().is_some(),
        }
    }

    /// Returns whether the path is well formed: `/` or components between single slashes, the last
    /// one a name where the command makes or takes an entry.
    pub fn is_well_formed(&self) -> bool {
        let Some(path) = self.path() else { return true };
        let named = matches!(self, Self::Mkdir(_) | Self::Touch(_) | Self::Rm(_) | Self::Rmdir(_));

        let relative = path.strip_prefix('/').unwrap_or(path);
        let ends_in_name =
            relative.rsplit('/').next().is_some_and(|name| !matches!(name, "" | "." | ".."));
        let components = path == "/" || relative.split('/').all(|component| !component.is_empty());
        components && (ends_in_name || !named)
    }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "a1", "b1"];

/// The way down from a directory to a path at or below it, without a slash at its start.
fn way_down<'p>(directory: &Path, path: &'p Path) -> Option<&'p str> {
    let prefix = if directory.is_root() { "" } else { directory.as_str() };
    let rest = path.as_str().strip_prefix(prefix)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// A path from the working directory on, if it lies at or below it. Where the last component must
/// be a name, it must lie below.
fn relative(path: &Path, cwd: &Path, named: bool) -> Option<String> {
    match way_down(cwd, path)? {
        "" => (!named).then(|| ".".to_owned()),
        way => Some(way.to_owned()),
    }
}

/// A path that leaves the working directory upwards, if there is an upwards, and no further than it
/// must.
fn through_parents(path: &Path, cwd: &Path, named: bool) -> Option<String> {
    let (mut at, mut way) = (cwd.clone(), Vec::new());
    // Each `..` leads one directory up, until the path lies at or below it.
    while !at.is_root() {
        at = at.parent().into();
        way.push("..");
        if let Some(down) = way_down(&at, path).filter(|down| !(named && down.is_empty())) {
            way.extend(Some(down).filter(|down| !down.is_empty()));
            return Some(way.join("/"));
        }
    }
    None
}

/// A path that goes down to a random directory and leaves it upwards, if there is one besides `/`.
fn detour(path: &Path, tree: &Tree, named: bool, rng: &mut TaskRng) -> Option<String> {
    let directories = tree
        .entries()
        .iter()
        .filter(|entry| entry.kind == Kind::Directory && !entry.path.is_root());
    let directories: Vec<_> = directories.map(|entry| &entry.path).collect();

    if directories.is_empty() {
        return None;
    }
    let directory = rng.one_of(&directories);
    through_parents(path, directory, named).map(|way| format!("{}/{way}", directory.as_str()))
}

/// Writes a path: a quarter relative to the working directory, a quarter through `..`, where
/// possible.
fn written(path: &Path, tree: &Tree, cwd: &Path, named: bool, rng: &mut TaskRng) -> String {
    let written = match rng.below(4) {
        0 => relative(path, cwd, named),
        1 => through_parents(path, cwd, named).or_else(|| detour(path, tree, named, rng)),
        _ => None,
    };
    written.unwrap_or_else(|| path.as_str().to_owned())
}

/// A uniform existing path of these; with probability 1/6, or if there is none, one or two random
/// names.
fn target<'t>(paths: impl Iterator<Item = &'t Path>, rng: &mut TaskRng) -> Path {
    let paths: Vec<_> = paths.collect();

    if rng.chance(5, 6) && !paths.is_empty() {
        return rng.one_of(&paths).clone();
    }

    (0..rng.size(1, 2)).fold(Path::root(), |path, _| path.join(rng.one_of(&NAMES)))
}

/// A random command against this state of the file system, by the percentages of the page.
pub fn draw_command(tree: &Tree, cwd: &Path, rng: &mut TaskRng) -> Command {
    let of_kind = |kind: Kind| {
        tree.entries().iter().filter(move |entry| entry.kind == kind).map(|entry| &entry.path)
    };
    let existing = |kind: Kind, rng: &mut TaskRng| target(of_kind(kind), rng);
    let written =
        |path: Path, named: bool, rng: &mut TaskRng| written(&path, tree, cwd, named, rng);

    let new = |rng: &mut TaskRng| {
        let directories: Vec<_> = of_kind(Kind::Directory).collect();
        let path = rng.one_of(&directories).join(rng.one_of(&NAMES));
        written(path, true, rng)
    };

    match rng.below(100) {
        0..8 => Command::Su(rng.one_of(&User::ALL)),
        8..20 if rng.chance(1, 4) => Command::Cd("..".to_owned()),
        8..20 => Command::Cd(written(existing(Kind::Directory, rng), false, rng)),
        20..38 => Command::Mkdir(new(rng)),
        38..54 => Command::Touch(new(rng)),
        54..66 => Command::Write(written(existing(Kind::File, rng), false, rng), rng.index(100)),
        66..78 => Command::Read(written(existing(Kind::File, rng), false, rng)),
        78..90 => {
            let [owner, others] =
                [(); 2].map(|()| u8::try_from(rng.below(8)).expect("invariant: a digit"));
            let path = target(tree.entries().iter().map(|entry| &entry.path), rng);
            Command::Chmod(Mode(owner, others), written(path, false, rng))
        }
        90..95 => Command::Rm(written(existing(Kind::File, rng), true, rng)),
        _ => {
            // The root has no name to end in.
            let path = target(of_kind(Kind::Directory).filter(|path| !path.is_root()), rng);
            Command::Rmdir(written(path, true, rng))
        }
    }
}
