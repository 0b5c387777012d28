//! Role definitions: named agents with their own options and prompt, each a file
//! `agents/<role>/NAME.toml`. The shipped ones are built in; files in `agents.folder` override
//! them.

use std::collections::BTreeMap;
use std::path::Path;

use config::{Config, Map, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::agents::{CoordinatorAgent, ExecutorAgent, VerifierAgent};
use super::api_key::is_name;
use super::check::check;
use super::error::SettingsError;
use super::implementation::implementation;
use super::layers::Layer;
use super::schema_value::child;
use prime_bench::prompts::VERIFIER;
use prime_protocol::Role;

/// The default of `agents.folder`, which need not exist.
const DEFAULT_FOLDER: &str = "agents";
/// The origin of built-in definitions and templates.
pub const BUILT_IN: &str = "built in";
/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

macro_rules! built_in {
    ($($role:literal / $name:literal),* $(,)?) => {
        [$(($role, $name, include_str!(concat!("../agents/", $role, "/", $name)))),*]
    };
}

/// Built-in definitions: role, file, text.
const DEFINITIONS: [(&str, &str, &str); 6] = built_in![
    "executor" / "instruct.toml",
    "verifier" / "strict.toml",
    "verifier" / "judge.toml",
    "verifier" / "tiny.toml",
    "verifier" / "panel.toml",
    "coordinator" / "chair.toml",
];

/// Built-in templates: role, file, text.
const TEMPLATES: [(&str, &str, &str); 9] = {
    let [compact, complete, step, token, likelihood, rating, reward, decide] = built_in![
        "executor" / "compact.j2",
        "executor" / "complete.j2",
        "executor" / "step.j2",
        "verifier" / "token.j2",
        "verifier" / "likelihood.j2",
        "verifier" / "rating.j2",
        "verifier" / "reward.j2",
        "coordinator" / "decide.j2",
    ];
    let check = ("verifier", "check.j2", VERIFIER);
    [compact, complete, step, check, token, likelihood, rating, reward, decide]
};

/// A named agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Defined<A> {
    /// The options of its role's section; those that the definition omits are as configured.
    pub options: A,
    /// `built in`, or the file.
    #[serde(skip)]
    pub origin: String,
    /// Options set in the file, sorted.
    #[serde(skip)]
    pub given: Vec<String>,
}

/// The text of a prompt template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Template {
    /// The template, in MiniJinja's language.
    pub text: String,
    /// `built in`, or the file.
    #[serde(skip)]
    pub origin: String,
}

/// All role definitions and templates, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// Executors by name.
    pub executors: BTreeMap<String, Defined<ExecutorAgent>>,
    /// Verifiers by name.
    pub verifiers: BTreeMap<String, Defined<VerifierAgent>>,
    /// Coordinators by name.
    pub coordinators: BTreeMap<String, Defined<CoordinatorAgent>>,
    /// Templates by `role/file`, such as `executor/step.j2`.
    pub templates: BTreeMap<String, Template>,
}

/// The text of a definition and its location.
struct Source {
    text: String,
    /// Its path for messages.
    place: String,
    origin: String,
}

fn io(path: &Path, cause: &std::io::Error) -> SettingsError {
    SettingsError::Definition { path: path.to_owned(), message: cause.to_string() }
}

/// Reads a file up to the maximum size.
fn read(path: &Path) -> Result<String, SettingsError> {
    // Checked before it is read: a folder of definitions may contain anything.
    let bytes = std::fs::metadata(path).map_err(|cause| io(path, &cause))?.len();
    if bytes > FILE_BYTES_MAX {
        let message = format!("has {bytes} bytes, but may have at most {FILE_BYTES_MAX}");
        return Err(SettingsError::Definition { path: path.to_owned(), message });
    }
    std::fs::read_to_string(path).map_err(|cause| io(path, &cause))
}

/// The files of a role's folder, sorted; empty if there is no such folder.
fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, SettingsError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(io(folder, &cause)),
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|cause| io(folder, &cause))?;
    // A folder's order is the file system's; errors and results must not depend on it.
    paths.sort();
    Ok(paths)
}

fn stem_of<'a>(path: &'a Path, extension: &str) -> Option<&'a str> {
    let is_it = path.extension().is_some_and(|found| found == extension);
    path.file_stem().filter(|_| is_it)?.to_str()
}

/// The sources of a role's definitions, by name.
type Sources = BTreeMap<String, Source>;

impl Definitions {
    /// Loads the built-in definitions and, if there is a `folder`, those in it. `sections` is the
    /// merged section `agents`, from which omitted options are taken; `schema` is that of the
    /// configuration.
    ///
    /// # Errors
    /// The first invalid definition, with file and line.
    pub(super) fn read(
        folder: Option<&str>,
        sections: &Value,
        schema: &Json,
    ) -> Result<Self, SettingsError> {
        let mut all = Self::default();
        let mut sources: BTreeMap<Role, Sources> = BTreeMap::new();
        for (role, file, text) in DEFINITIONS {
            let role = Role::ALL.into_iter().find(|known| known.name() == role);
            let (Some(role), Some(name)) = (role, stem_of(Path::new(file), "toml")) else {
                continue;
            };
            // Messages name the path in the repository, where the text can be read.
            let place = format!("agents/{role}/{file}");
            let source = Source { text: text.to_owned(), place, origin: BUILT_IN.to_owned() };
            sources.entry(role).or_default().insert(name.to_owned(), source);
        }

        for (role, file, text) in TEMPLATES {
            let template = Template { text: text.to_owned(), origin: BUILT_IN.to_owned() };
            all.templates.insert(format!("{role}/{file}"), template);
        }

        if let Some(folder) = folder {
            all.add_folder(Path::new(folder), &mut sources)?;
        }

        let mut take = |role| sources.remove(&role).unwrap_or_default();
        all.executors = defined(Role::Executor, take(Role::Executor), sections, schema)?;
        all.verifiers = defined(Role::Verifier, take(Role::Verifier), sections, schema)?;
        all.coordinators = defined(Role::Coordinator, take(Role::Coordinator), sections, schema)?;
        Ok(all)
    }

    /// Reads a folder's templates into `self`, and its definitions into `sources`. They override
    /// those of the same name.
    fn add_folder(
        &mut self,
        folder: &Path,
        sources: &mut BTreeMap<Role, Sources>,
    ) -> Result<(), SettingsError> {
        // Only the default folder may be missing.
        if folder != Path::new(DEFAULT_FOLDER) && !folder.is_dir() {
            let message =
                "not a folder; set `agents.folder` to the folder of your definitions".to_owned();
            return Err(SettingsError::Definition { path: folder.to_owned(), message });
        }

        for role in Role::ALL {
            for path in files(&folder.join(role.name()))? {
                if let Some(name) = stem_of(&path, "toml") {
                    check_name(role, name, &path)?;
                    let place = path.display().to_string();
                    let text = read(&path)?;

                    // A checkout contains the built-in files; equal copies of them override
                    // nothing.
                    let known = sources.entry(role).or_default();
                    let is_shipped = known.get(name).is_some_and(|source| source.text == text);
                    let origin = if is_shipped { BUILT_IN.to_owned() } else { place.clone() };
                    known.insert(name.to_owned(), Source { text, place, origin });
                } else if let Some(name) = stem_of(&path, "j2") {
                    let (key, text) = (format!("{role}/{name}.j2"), read(&path)?);
                    if self.templates.get(&key).is_none_or(|known| known.text != text) {
                        let origin = path.display().to_string();
                        self.templates.insert(key, Template { text, origin });
                    }
                }
            }
        }
        Ok(())
    }

    /// The names of a role's definitions, sorted.
    pub fn names(&self, role: Role) -> Vec<&str> {
        match role {
            Role::Executor => self.executors.keys().map(String::as_str).collect(),
            Role::Verifier => self.verifiers.keys().map(String::as_str).collect(),
            Role::Coordinator => self.coordinators.keys().map(String::as_str).collect(),
        }
    }
}

fn check_name(role: Role, name: &str, path: &Path) -> Result<(), SettingsError> {
    let refuse =
        |message: String| Err(SettingsError::Definition { path: path.to_owned(), message });
    if !is_name(name) {
        return refuse(
            "a definition's file name must have 1 to 64 lower-case letters, digits, `-` and `_`"
                .to_owned(),
        );
    }

    // Names of definitions and implementations are looked up in one namespace.
    if implementation(role, name).is_some() {
        return refuse(format!("`{name}` is the name of an implementation; rename the file"));
    }
    Ok(())
}

/// Loads the definitions of one role.
fn defined<A: DeserializeOwned>(
    role: Role,
    sources: Sources,
    sections: &Value,
    schema: &Json,
) -> Result<BTreeMap<String, Defined<A>>, SettingsError> {
    let section_schema = child(schema, "agents").and_then(|agents| child(agents, role.name()));
    let section_schema = section_schema.expect("invariant: each role has a section");

    let base = section(sections, role);
    let read = |(name, source): (String, Source)| {
        let layer = Layer::text(&source.text, &source.place)?;
        check(&Value::new(None, layer.0.clone()), section_schema)?;

        let mut given: Vec<_> = layer.0.keys().cloned().collect();
        given.sort();

        if !given.iter().any(|key| key == "implementation") {
            return Err(SettingsError::Missing {
                key: "implementation".to_owned(),
                origin: source.place,
                example: "implementation = \"NAME\"".to_owned(),
            });
        }

        let mut base = base.clone();
        // A definition describes itself; the section's description is about another agent.
        base.0.remove("description");
        // A description is required by the type, but not from the author of a definition.
        let empty =
            Layer(Map::from_iter([("description".to_owned(), Value::new(None, String::new()))]));

        let merged = Config::builder()
            .add_source(empty)
            .add_source(base)
            .add_source(layer)
            .build()
            .map_err(SettingsError::Merge)?;

        let options = merged.try_deserialize().map_err(SettingsError::Merge)?;
        Ok((name, Defined { options, origin: source.origin, given }))
    };
    sources.into_iter().map(read).collect()
}

/// A role's section of the merged configuration.
fn section(sections: &Value, role: Role) -> Layer {
    let table = sections.clone().into_table().unwrap_or_default();
    Layer(
        table
            .get(role.name())
            .and_then(|section| section.clone().into_table().ok())
            .unwrap_or_default(),
    )
}
