//! File System Ops: commands of three users on a tree of directories and files with rights.
//!
//! A step is one command; its line is the result.

use super::file_command::{Command, draw_command};
use super::file_tree::{Code, Entry, Kind, Mode, Path, READ, Tree, User, WRITE};
use crate::tasks::operation::validate_count;
use crate::tasks::pages::file_system as page;
use crate::tasks::prelude::*;

/// The task `file-system`.
pub struct FileSystem;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The commands, in order.
    pub commands: Vec<Command>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of commands finished.
    pub done: usize,
    /// All entries with their owners and rights.
    pub tree: Tree,
    /// Working directory.
    pub cwd: Path,
    /// User who gives the commands.
    pub user: User,
    /// Number of commands that have failed.
    pub errors: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// A command other than a read succeeds.
        Success = "ok", "ok";
        /// The result of a read.
        Content(content: usize) = "ok <nat>", "ok {content}";
        /// The command fails and changes nothing.
        Failure(code: Code) = "err <noent|notdir|isdir|exists|perm|notempty|busy>", "err {code}";
    }
}

/// The effect of a command that succeeds.
enum Effect {
    Become(User),
    Go(Path),
    Make(Entry),
    Nothing,
    Write(Path, usize),
    Show(usize),
    Remove(Path),
    Chmod(Path, Mode),
}

/// Directory and name of the last component.
pub fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        None => ("", path),
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
    }
}

impl State {
    /// The outcome of a command. A command that is only forbidden (missing rights, removing a
    /// directory that is in use) counts as a failure if `checked`.
    fn outcome(&self, command: &Command, checked: bool) -> Result<Effect, Code> {
        // Without a user, rights are not looked at.
        let user = Some(self.user).filter(|_| checked);
        let demand = |holds: bool, code: Code| if holds { Ok(()) } else { Err(code) };
        let allowed = |entry: &Entry, right: u8| {
            demand(user.is_none_or(|user| entry.allows(user, right)), Code::Perm)
        };

        let walk = |path: &str| self.tree.walk(&self.cwd, path, user);
        let find = |path: &Path| self.tree.find(path.as_str()).ok_or(Code::Noent);
        let file = |path: &str, right: u8| {
            let path = walk(path)?;
            let entry = find(&path)?;
            demand(entry.kind == Kind::File, Code::Isdir)?;
            allowed(entry, right)?;
            Ok((path, entry.content))
        };

        let parent = |path: &str| {
            let (directory, name) = split(path);
            let directory = self.tree.enter(&walk(directory)?, user)?;
            Ok((directory, directory.path.join(name)))
        };

        Ok(match command {
            Command::Su(user) => Effect::Become(*user),
            Command::Cd(path) => {
                let path = walk(path)?;
                self.tree.enter(&path, user)?;
                Effect::Go(path)
            }
            Command::Mkdir(path) | Command::Touch(path) => {
                let kind =
                    if matches!(command, Command::Mkdir(_)) { Kind::Directory } else { Kind::File };
                let (directory, path) = parent(path)?;

                if let Some(entry) = self.tree.find(path.as_str()) {
                    // `touch` leaves an existing file as it is.
                    demand(kind == Kind::File && entry.kind == Kind::File, Code::Exists)?;
                    return Ok(Effect::Nothing);
                }

                allowed(directory, WRITE)?;
                Effect::Make(Entry::new(path, kind, self.user))
            }
            Command::Write(path, content) => Effect::Write(file(path, WRITE)?.0, *content),
            Command::Read(path) => Effect::Show(file(path, READ)?.1),
            Command::Rm(path) | Command::Rmdir(path) => {
                let (directory, path) = parent(path)?;
                let entry = find(&path)?;
                match command {
                    Command::Rm(_) => demand(entry.kind == Kind::File, Code::Isdir)?,
                    _ => demand(entry.kind == Kind::Directory, Code::Notdir)?,
                }

                allowed(directory, WRITE)?;

                if checked && entry.kind == Kind::Directory {
                    demand(!self.tree.holds_entries(&path), Code::Notempty)?;
                    demand(path != self.cwd, Code::Busy)?;
                }
                Effect::Remove(path)
            }
            Command::Chmod(mode, path) => {
                let path = walk(path)?;
                let owner = find(&path)?.owner;
                demand(user.is_none_or(|user| user == User::Root || user == owner), Code::Perm)?;
                Effect::Chmod(path, *mode)
            }
        })
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Become(user) => self.user = user,
            Effect::Go(path) => self.cwd = path,
            Effect::Make(entry) => self.tree.insert(entry),
            Effect::Nothing | Effect::Show(_) => {}
            Effect::Write(path, content) => {
                self.tree.find_mut(&path).into_iter().for_each(|entry| entry.content = content);
            }
            Effect::Remove(path) => self.tree.remove(&path),
            Effect::Chmod(path, mode) => {
                self.tree.find_mut(&path).into_iter().for_each(|entry| entry.mode = mode);
            }
        }
    }
}

/// Commands drawn one by one against the state that the earlier ones lead to, with the end of their
/// run; `None` where no command fails for rights, or none for a missing entry.
fn draw_run(count: usize, rng: &mut TaskRng) -> Option<(Instance, State)> {
    let mut instance = Instance { commands: Vec::with_capacity(count) };
    let mut state = FileSystem::start(&instance);
    let (mut perm, mut noent) = (false, false);

    for _ in 0..count {
        instance.commands.push(draw_command(&state.tree, &state.cwd, rng));
        let action = FileSystem::reference(&instance, &state)?;
        perm |= action == Action::Failure(Code::Perm);
        noent |= action == Action::Failure(Code::Noent);
        FileSystem::step(&instance, &mut state, action).ok()?;
    }

    (perm && noent).then_some((instance, state))
}

impl Task for FileSystem {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let count = page::size::COMMANDS.draw(difficulty, rng);
            if let Some((instance, end)) = draw_run(count, rng)
                && end.errors <= count - end.errors
                && end.tree.entries().len() >= 3
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        validate_count("commands", instance.commands.len())?;
        let malformed = instance.commands.iter().find(|command| !command.is_well_formed());
        let reason =
            || malformed.map(|command| format!("`{command}` has no path for this command"));
        InvalidInput::unless(malformed.is_none(), "commands", reason().unwrap_or_default())
    }

    fn start(_: &Instance) -> State {
        State {
            done: 0,
            tree: Tree::default(),
            cwd: Path::root(),
            user: User::Root,
            errors: 0,
            last: Last(None),
        }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        InvalidInput::unless(
            state.tree.is_ordered(),
            "tree",
            "must have absolute paths in their order, each once",
        )?;
        limits::sayable("tree", state.tree.entries().iter().map(|entry| entry.content))?;
        InvalidInput::unless(state.cwd.is_absolute(), "cwd", "must be an absolute path")
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let command = instance.commands.get(state.done).ok_or(Illegal("every command is done"))?;

        match *action {
            Action::Failure(_) => state.errors += 1,
            Action::Success | Action::Content(_) => {
                let effect = state
                    // A wrong line may overlook rights, but cannot do the impossible.
                    .outcome(command, false)
                    .map_err(|_| Illegal("the command cannot be carried out"))?;
                if matches!(effect, Effect::Show(_)) != matches!(action, Action::Content(_)) {
                    return Err(Illegal("a read gives a content, and nothing else does"));
                }
                state.carry_out(effect);
            }
        }

        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let command = instance.commands.get(state.done)?;
        Some(match state.outcome(command, true) {
            Ok(Effect::Show(content)) => Action::Content(content),
            Ok(_) => Action::Success,
            Err(code) => Action::Failure(code),
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::TREE, after.tree.is_whole());

        let cwd = after.tree.find(after.cwd.as_str());
        found.require(page::CWD, cwd.is_some_and(|entry| entry.kind == Kind::Directory));

        if let (Action::Failure(code), Some(command)) = (action, instance.commands.get(before.done))
        {
            found.require(page::CODES, command.can_fail_with(*code));
            found.require(page::ROOT_RIGHTS, *code != Code::Perm || before.user != User::Root);
        }

        // A command has one result in each state: `permitted` and `cause` decide what forbids it,
        // and its effect follows from the state. So a clean trace that ends is the algorithm's.
        if let Some(command) = instance.commands.get(before.done) {
            let outcome = before.outcome(command, true);
            match (action, &outcome) {
                (Action::Failure(code), outcome) => {
                    found.require(page::CAUSE, outcome.as_ref().err() == Some(code));
                }
                (Action::Content(said), Ok(Effect::Show(content))) => {
                    found.require(page::CONTENT, said == content);
                }
                (Action::Success | Action::Content(_), outcome) => {
                    found.require(page::PERMITTED, outcome.is_ok());
                }
            }
        }

        let (old, new) = before.tree.differences(&after.tree);
        let allowed = usize::from(!matches!(action, Action::Failure(_)));
        found.require(page::ONE_ENTRY, old.len().max(new.len()) <= allowed);

        // That owners are known users holds by their type.
        let kept = |entry: &Entry| {
            before.tree.find(entry.path.as_str()).is_none_or(|old| old.owner == entry.owner)
        };
        found.require(page::OWNERS, new.iter().all(kept));

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.commands.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.commands.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One step a command.
        instance.commands.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "tree": state.tree, "cwd": state.cwd, "user": state.user, "errors": state.errors })
    }
}
