//! File System: the entries along the path, whether each may be entered, then the right that the command needs; before a directory
//! is removed, its path beside the working directory's.
// An entry is its kind, the initial of its owner and its mode, such as `da75`. It is judged by its right: `r` for root,
// else the digit that counts for the user.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::file_command::Command;
use prime_bench::tasks::system_simulation::file_system::{FileSystem, Instance, State, split};
use prime_bench::tasks::system_simulation::file_tree::{ENTER, Entry, Kind, Path, READ, User, WRITE};

use crate::Lesson;

pub struct Of;

/// A directory on the way, or where the way ends.
struct Stop<'a> {
    name: String,
    entry: Option<&'a Entry>,
}

/// The entries that a written path names one after the other, from where it begins.
fn way<'a>(state: &'a State, written: &str) -> (Path, Vec<Stop<'a>>) {
    let mut at = if written.starts_with('/') { Path::root() } else { state.cwd.clone() };
    let stop = |name: &str, at: &Path| Stop { name: name.to_owned(), entry: state.tree.find(at.as_str()) };
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

/// Whether the command makes or takes the entry that its path ends in.
fn names_an_entry(command: &Command) -> bool {
    matches!(command, Command::Mkdir(_) | Command::Touch(_) | Command::Rm(_) | Command::Rmdir(_))
}

fn shown(entry: Option<&Entry>) -> String {
    entry.map_or_else(
        || "-".to_owned(),
        |entry| {
            let kind = if entry.kind == Kind::Directory { 'd' } else { 'f' };
            format!("{kind}{}{}", initial(entry.owner), entry.mode)
        },
    )
}

impl Lesson for Of {
    type Task = FileSystem;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(command) = instance.commands.get(state.done) else { return "-".to_owned() };
        let text = command.to_string();
        let verb = text.split(' ').next().unwrap_or_default();
        let Some(path) = command.path() else { return verb.to_owned() };
        let (directory, name) = if names_an_entry(command) { split(path) } else { (path, "") };
        let (at, stops) = way(state, directory);
        let mut line = format!("{verb} {}", initial(state.user));
        for stop in &stops {
            line += &format!(" {}:{}", stop.name, shown(stop.entry));
        }
        if names_an_entry(command) {
            let path = at.join(name);
            line += &format!(" > {name}:{}", shown(state.tree.find(path.as_str())));
            if matches!(command, Command::Rmdir(_)) {
                // What a directory holds is its list: whether it has a first entry.
                let listed = if state.tree.holds_entries(&path) { "+" } else { "-" };
                line += &format!(" list {listed} is {} cwd {}", path.as_str(), state.cwd.as_str());
            }
        }
        if let (Command::Read(_), Some(entry)) = (command, state.tree.find(at.as_str())) {
            line += &format!(" content {}", entry.content);
        }
        line
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        FileSystem::reference(instance, state)?;
        let command = instance.commands.get(state.done)?;
        let Some(path) = command.path() else { return Some(String::new()) };
        let (directory, name) = if names_an_entry(command) { split(path) } else { (path, "") };
        let (at, stops) = way(state, directory);
        let mut steps = Vec::new();
        // The last stop is entered too if the command stands in it or works in it.
        let enters_last = names_an_entry(command) || matches!(command, Command::Cd(_));
        let entered = stops.len() - usize::from(!enters_last);
        for stop in &stops[..entered] {
            let (step, passes) = entering(state, stop);
            steps.push(step);
            if !passes {
                return Some(steps.join(" "));
            }
        }
        let last = stops.last()?;
        let outcome = match command {
            Command::Su(_) | Command::Cd(_) => String::new(),
            Command::Mkdir(_) | Command::Touch(_) | Command::Rm(_) | Command::Rmdir(_) => {
                let path = at.join(name);
                let entry = state.tree.find(path.as_str());
                let right = last.entry.map_or_else(String::new, |entry| judged(state, entry, WRITE));
                let beside = match command {
                    Command::Rmdir(_) => beside(path.as_str(), state.cwd.as_str()),
                    _ => String::new(),
                };
                format!("{} {right}{beside}", shown(entry))
            }
            Command::Write(..) | Command::Read(_) => {
                let right = if matches!(command, Command::Read(_)) { READ } else { WRITE };
                format!(
                    "{} {}",
                    shown(last.entry),
                    last.entry.map_or_else(String::new, |entry| judged(state, entry, right))
                )
            }
            Command::Chmod(..) => {
                let owner = last.entry.map_or('-', |entry| initial(entry.owner));
                format!("{} {owner}{}", shown(last.entry), initial(state.user))
            }
        };
        steps.push(outcome);
        Some(steps.join(" ").trim_end().to_owned())
    }
}

/// The names of a path beside those of the working directory, up to the first that differs: the directory holds the other if
/// none does.
fn beside(path: &str, cwd: &str) -> String {
    let mut others = cwd.split('/').filter(|name| !name.is_empty());
    let mut line = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let other = others.next().unwrap_or("-");
        line += &format!(" {name}{}{other}", if name == other { '=' } else { '!' });
        if name != other {
            break;
        }
    }
    line
}

/// Whether a directory may be entered, and why not.
fn entering(state: &State, stop: &Stop<'_>) -> (String, bool) {
    let Some(entry) = stop.entry else { return (format!("{}:-", stop.name), false) };
    if entry.kind == Kind::File {
        return (format!("{}:f", stop.name), false);
    }
    (format!("{}:d{}", stop.name, judged(state, entry, ENTER)), entry.allows(state.user, ENTER))
}

/// The digit of the mode that counts, and whether it has the right.
fn judged(state: &State, entry: &Entry, right: u8) -> String {
    let digit = match state.user {
        User::Root => "r".to_owned(),
        user if user == entry.owner => format!("o{}", entry.mode.0),
        _ => format!("x{}", entry.mode.1),
    };
    format!("{digit}{}", if entry.allows(state.user, right) { '+' } else { '-' })
}
