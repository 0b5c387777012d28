//! File System: the directories along the path, each with whether it may be entered, then the
//! command's verb again, what its path ends in, and the right that it needs; before a directory is
//! removed, its path beside the working directory's.
// An entry is its kind, the initial of its owner and its mode, such as `da75`. What is entered has
// a letter, since a path may lead to the same directory several times; a slash follows it if
// another one is entered, a dot if it is the last. What a path ends in is `T`; the user follows
// `@`.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::file_command::Command;
use prime_bench::tasks::system_simulation::file_system::{FileSystem, Instance, State, split};
use prime_bench::tasks::system_simulation::file_tree::{
    ENTER, Entry, Kind, Path, READ, User, WRITE,
};

use crate::Lesson;

pub struct FileSystemLesson;

/// A directory on the way, or where the way ends.
struct Stop<'a> {
    name: String,
    entry: Option<&'a Entry>,
}

/// The directories and the target of a command's path.
struct Way<'a> {
    /// The stops that must be directories which may be entered.
    entered: Vec<Stop<'a>>,
    /// The end of the path, for commands that need more than to enter it.
    target: Option<(Path, Stop<'a>)>,
}

impl<'a> Way<'a> {
    fn of(state: &'a State, command: &Command, path: &str) -> Self {
        let is_named = names_an_entry(command);
        let (directory, name) = if is_named { split(path) } else { (path, "") };
        let (at, mut entered) = stops(state, directory);

        let target = if is_named {
            let path = at.join(name);
            let entry = state.tree.find(path.as_str());
            Some((path, Stop { name: name.to_owned(), entry }))
        } else if matches!(command, Command::Cd(_)) {
            // `cd` needs nothing of its directory but to enter it.
            None
        } else {
            entered.pop().map(|last| (at, last))
        };

        Self { entered, target }
    }
}

/// The entries that a written path names one after the other, from where it begins.
fn stops<'a>(state: &'a State, written: &str) -> (Path, Vec<Stop<'a>>) {
    // Without a leading slash the way begins in the working directory.
    let mut at = if written.starts_with('/') { Path::root() } else { state.cwd.clone() };
    let stop =
        |name: &str, at: &Path| Stop { name: name.to_owned(), entry: state.tree.find(at.as_str()) };
    let mut stops = vec![stop(if at.is_root() { "/" } else { "." }, &at)];

    for component in written.split('/').filter(|component| !component.is_empty()) {
        match component {
            "." => {}
            ".." => at = at.parent().into(),
            name => at = at.join(name),
        }
        stops.push(stop(component, &at));
    }

    (at, stops)
}

fn initial(user: User) -> char {
    match user {
        User::Root => 'r',
        User::Alice => 'a',
        User::Bob => 'b',
    }
}

/// Returns whether the command makes or takes the entry that its path ends in.
fn names_an_entry(command: &Command) -> bool {
    matches!(command, Command::Mkdir(_) | Command::Touch(_) | Command::Rm(_) | Command::Rmdir(_))
}

fn verb(command: &Command) -> &'static str {
    match command {
        Command::Su(_) => "su",
        Command::Cd(_) => "cd",
        Command::Mkdir(_) => "mkdir",
        Command::Touch(_) => "touch",
        Command::Write(..) => "write",
        Command::Read(_) => "read",
        Command::Rm(_) => "rm",
        Command::Rmdir(_) => "rmdir",
        Command::Chmod(..) => "chmod",
    }
}

/// The letter of a stop; no path of the benchmark has as many.
fn letter(place: usize) -> char {
    ('A'..='S').nth(place).unwrap_or('~')
}

fn kind(entry: &Entry) -> char {
    if entry.kind == Kind::Directory { 'd' } else { 'f' }
}

fn shown(entry: Option<&Entry>) -> String {
    entry.map_or_else(
        || "-".to_owned(),
        |entry| format!("{}{}{}", kind(entry), initial(entry.owner), entry.mode),
    )
}

/// The character after a stop that is entered.
fn separator(place: usize, entered: usize) -> char {
    if place + 1 == entered { '.' } else { '/' }
}

impl Lesson for FileSystemLesson {
    type Task = FileSystem;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(command) = instance.commands.get(state.done) else { return "-".to_owned() };
        let Some(path) = command.path() else { return verb(command).to_owned() };
        let way = Way::of(state, command, path);
        let mut line = format!("{} @{}", verb(command), initial(state.user));

        for (place, stop) in way.entered.iter().enumerate() {
            let separator = separator(place, way.entered.len());
            line += &format!(" {} {}:{}{separator}", stop.name, letter(place), shown(stop.entry));
        }

        let Some((path, target)) = way.target else { return line };
        line += &format!(" {} T:{}", target.name, shown(target.entry));

        match command {
            // A directory is empty if its list has no first entry.
            Command::Rmdir(_) => {
                let listed = if state.tree.holds_entries(&path) { '+' } else { '-' };
                let beside: Vec<_> = beside(&path, &state.cwd).iter().map(Pair::shown).collect();
                line + &format!(" list:{listed} {}", beside.join(" "))
            }
            Command::Read(_) => match target.entry {
                Some(entry) => line + &format!(" content {}", entry.content),
                None => line,
            },
            _ => line,
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        FileSystem::reference(instance, state)?;
        let command = instance.commands.get(state.done)?;
        let Some(path) = command.path() else { return Some(String::new()) };

        let way = Way::of(state, command, path);
        let mut line = String::new();

        for (place, stop) in way.entered.iter().enumerate() {
            line += &format!("{}:", letter(place));
            let Some(entry) = stop.entry else { return Some(line + "-") };
            if entry.kind == Kind::File {
                return Some(line + "f");
            }

            let separator = separator(place, way.entered.len());
            line += &format!("{}{separator}{} ", shown(stop.entry), judged(state, entry, ENTER));
            // A directory that may not be entered ends the way.
            if !entry.allows(state.user, ENTER) {
                return Some(line.trim_end().to_owned());
            }
        }

        line += verb(command);
        let Some((path, target)) = &way.target else { return Some(line) };

        let directory = way.entered.last().and_then(|stop| stop.entry);
        line += " T:";
        let is_made = matches!(command, Command::Mkdir(_) | Command::Touch(_));

        let Some(entry) = target.entry else {
            line.push('-');
            // A new entry needs the right to write into its directory; all else needs the entry
            // itself.
            return Some(if is_made { line + &again(state, directory?, WRITE) } else { line });
        };

        Some(match command {
            Command::Read(_) | Command::Write(..) if entry.kind == Kind::File => {
                let right = if matches!(command, Command::Read(_)) { READ } else { WRITE };
                format!("{line}{}.{}", shown(target.entry), judged(state, entry, right))
            }
            Command::Chmod(..) => {
                format!("{line}{}.{}", shown(target.entry), judging(state, entry))
            }
            Command::Rm(_) if entry.kind == Kind::File => {
                format!("{line}f{}", again(state, directory?, WRITE))
            }
            Command::Rmdir(_) if entry.kind == Kind::Directory => {
                line += &format!("d{}", again(state, directory?, WRITE));
                if directory?.allows(state.user, WRITE) {
                    let is_empty = !state.tree.holds_entries(path);
                    line += if is_empty { " list:-" } else { " list:+" };
                    // An empty directory can be removed unless the working directory lies in it.
                    if is_empty {
                        for pair in beside(path, &state.cwd) {
                            line += &format!(
                                " {}{}",
                                pair.shown(),
                                if pair.is_equal() { '=' } else { '!' }
                            );
                            if !pair.is_equal() {
                                break;
                            }
                        }
                    }
                }
                line
            }
            _ => {
                line.push(kind(entry));
                line
            }
        })
    }
}

/// The names of a path and of the working directory at the same depth; `-` after the last one.
struct Pair {
    depth: usize,
    name: String,
    other: String,
}

impl Pair {
    fn shown(&self) -> String {
        format!("{}:{}/{}", self.depth, self.name, self.other)
    }

    fn is_equal(&self) -> bool {
        self.name == self.other
    }
}

/// A path beside the working directory, as far as the path goes and one further.
fn beside(path: &Path, cwd: &Path) -> Vec<Pair> {
    let mut names =
        [path, cwd].map(|path| path.as_str().split('/').filter(|name| !name.is_empty()));
    let mut pairs = Vec::new();

    loop {
        let [name, other] = names.each_mut().map(Iterator::next);
        let shown = |name: Option<&str>| name.unwrap_or("-").to_owned();
        pairs.push(Pair { depth: pairs.len() + 1, name: shown(name), other: shown(other) });
        if name.is_none() {
            return pairs;
        }
    }
}

/// The user beside the owner before, whether they are the same, and the digit of the mode that
/// counts then; `r` for root, for whom none does.
fn judging(state: &State, entry: &Entry) -> String {
    match state.user {
        User::Root => "r".to_owned(),
        user if user == entry.owner => format!("{}={}", initial(user), entry.mode.0),
        user => format!("{}!{}", initial(user), entry.mode.1),
    }
}

/// Returns whether the entry grants a right: [`judging`], the right, and the outcome.
fn judged(state: &State, entry: &Entry, right: u8) -> String {
    judging(state, entry) + &outcome(state, entry, right)
}

/// Another right of a directory that was judged before: the digit that counted, the right, and the
/// outcome.
fn again(state: &State, entry: &Entry, right: u8) -> String {
    let digit = match state.user {
        User::Root => "r".to_owned(),
        user if user == entry.owner => entry.mode.0.to_string(),
        _ => entry.mode.1.to_string(),
    };
    format!(" {digit}{}", outcome(state, entry, right))
}

fn outcome(state: &State, entry: &Entry, right: u8) -> String {
    let letter = match right {
        _ if state.user == User::Root => "",
        READ => "r",
        WRITE => "w",
        _ => "x",
    };
    format!("{letter}{}", if entry.allows(state.user, right) { '+' } else { '-' })
}
