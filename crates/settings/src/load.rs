//! Merges the layers and validates the result. Reads only the given files, and the headers of the
//! models that they name.

use std::path::PathBuf;
use std::sync::LazyLock;

use config::{Config, Map, Value, ValueKind};
use sha2::{Digest, Sha256};

use super::agents::{CoordinatorAgent, ExecutorAgent, VerifierAgent};
use super::api_key::RESERVED;
use super::approve::check_approve;
use super::check::{check, check_agents, origin};
use super::definitions::Definitions;
use super::engine::ModelSource;
use super::error::SettingsError;
use super::implementation::{Backing, ExecutorImplementation, Implementation as _};
use super::layers::{Layer, from_json};
use super::own_task::check_tasks;
use super::references::unknown;
use super::resolve::RoleOptions as _;
use super::schedule::check_schedules;
use super::sections::Settings;
use prime_bench::spelling::nearest;
use prime_bench::tasks;
use prime_engine::check_template_variables;
use prime_engine::gguf::{self, TASKS_KEY};
use prime_models::BUILT_IN_MODELS;
use prime_protocol::Role;

/// The shipped defaults, `config/default.toml`.
pub const DEFAULT_TOML: &str = include_str!("../default.toml");

/// The origin of the shipped defaults in messages.
const DEFAULT_TOML_PATH: &str = "config/default.toml";

/// Where definitions are taken from.
#[derive(Clone, Copy)]
enum DefinitionSources {
    /// The executable alone.
    BuiltIn,
    /// The executable and `agents.folder`.
    WithFolder,
}

/// The shipped defaults of a role's section, as JSON.
#[must_use]
pub fn default_section(role: Role) -> &'static serde_json::Map<String, serde_json::Value> {
    static AGENTS: LazyLock<serde_json::Value> = LazyLock::new(|| {
        let all: serde_json::Value =
            toml::from_str(DEFAULT_TOML).expect("invariant: the shipped defaults are TOML");
        all["agents"].clone()
    });
    AGENTS[role.name()].as_object().expect("invariant: each role has a section")
}

impl Settings {
    /// Merges the shipped defaults, `files` in order, the variables of `environment` that begin
    /// with `PRIME__`, and the `--set` arguments `sets` in order, and validates the result.
    /// [`read_environment`](super::read_environment) gives `environment`.
    ///
    /// # Errors
    /// The first error, with its key, its source and the fix. An error in a layer counts even if a
    /// later layer overrides the value.
    pub fn load(
        files: &[PathBuf],
        environment: impl Iterator<Item = (String, String)>,
        sets: &[String],
    ) -> Result<Self, SettingsError> {
        let mut layers = vec![Layer::text(DEFAULT_TOML, DEFAULT_TOML_PATH)?];
        for file in files {
            layers.push(Layer::file(file)?);
        }

        layers.push(Layer::environment(environment, Self::shared_schema()));
        for argument in sets {
            layers.push(Layer::set(argument, Self::shared_schema())?);
        }
        Self::merged(layers, DefinitionSources::WithFolder)
    }

    /// The embedded defaults with the built-in definitions. Unlike [`Settings::default`], reads no
    /// file, so the result is the same in every working directory.
    ///
    /// # Panics
    /// Never: the shipped defaults are valid.
    #[must_use]
    pub fn built_in() -> Self {
        let defaults = Layer::text(DEFAULT_TOML, DEFAULT_TOML_PATH);
        defaults
            .and_then(|defaults| Self::merged(vec![defaults], DefinitionSources::BuiltIn))
            .expect("invariant: the shipped defaults are valid")
    }

    /// Merges the layers, lowest first, and validates the result.
    fn merged(layers: Vec<Layer>, sources: DefinitionSources) -> Result<Self, SettingsError> {
        // Each layer is checked on its own, so that a mistake counts even where a later layer
        // overrides it.
        let schema = Self::shared_schema();
        for layer in &layers {
            check(&Value::new(None, layer.0.clone()), schema)?;
        }

        let template = engine_template(&layers);
        let mut builder = Config::builder();
        for layer in std::iter::once(template).chain(layers) {
            builder = builder.add_source(layer);
        }

        let merged = builder.build().map_err(SettingsError::Merge)?;
        let origins = merged.cache.clone();
        require_models(&origins)?;

        let mut settings: Self = merged.try_deserialize().map_err(SettingsError::Merge)?;

        // Definitions inherit from the merged sections, and agents' names are only known with them.
        let sections = table(&origins).and_then(|root| root.get("agents")).cloned();
        let sections = sections.unwrap_or_else(|| Value::new(None, Map::<String, Value>::new()));
        let folder = match sources {
            DefinitionSources::BuiltIn => None,
            DefinitionSources::WithFolder => Some(settings.agents.folder.as_str()),
        };
        settings.definitions = Definitions::read(folder, &sections, schema)?;

        check_agents(&origins, schema, &|role| settings.agent_names(role))?;
        settings.check_together(&origins)?;
        settings.read_learnt_tasks();

        Ok(settings)
    }

    /// Reads from model files which tasks they have learnt, for entries that state no tasks
    /// themselves. A file that cannot be read is reported when its engine starts.
    fn read_learnt_tasks(&mut self) {
        let executable = std::env::current_exe().ok();
        for engine in self.engines.values_mut().filter(|engine| engine.tasks.is_empty()) {
            let Ok(ModelSource::File(path)) = engine.find_model(executable.as_deref()) else {
                continue;
            };

            let Ok(header) = gguf::read(&path) else { continue };
            // A file from a later version may name tasks that this one does not know.
            let tasks = header.strings.get(TASKS_KEY).into_iter().flatten();
            engine.tasks = tasks.filter(|task| tasks::find(task).is_ok()).cloned().collect();
        }
    }

    /// Validates every range and every relation between values. [`Settings::load`] already does;
    /// this is for settings that were changed in code.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let values = from_json(serde_json::to_value(self).expect("invariant: settings serialise"));

        check_agents(&values, Self::shared_schema(), &|role| self.agent_names(role))?;
        self.check_together(&values)
    }

    /// Checks relations between values, which a schema cannot express. `origins` has their sources.
    fn check_together(&self, origins: &Value) -> Result<(), SettingsError> {
        let conflict = |key: &[&str], message: String| SettingsError::Conflict {
            origin: origin_of(origins, key),
            message,
        };
        check_tasks(&self.tasks, &conflict)?;
        self.check_webhooks(&conflict)?;
        check_schedules(&self.schedules, &self.server.keys, &conflict)?;
        check_approve(&self.run.approve, &conflict)?;
        let run = &self.run;

        if run.tau_hard < run.tau_soft {
            let message = format!(
                "`run.tau_hard` is {}, but must be at least `run.tau_soft`, which is {}; set both",
                run.tau_hard, run.tau_soft
            );
            return Err(conflict(&["run", "tau_hard"], message));
        }

        // As many proposals at once as the largest `run.fanout`.
        let beam = &run.beam;
        if beam.width * beam.actions > 256 {
            let message = format!(
                "`run.beam.width` times `run.beam.actions` is {}, but may be at most 256",
                beam.width * beam.actions
            );
            return Err(conflict(&["run", "beam", "width"], message));
        }

        let group = &run.group;
        if group.max < group.min {
            let message = format!(
                "`run.group.max` is {}, but must be at least `run.group.min`, which is {}",
                group.max, group.min
            );
            return Err(conflict(&["run", "group", "max"], message));
        }

        let ahead = &run.ahead;
        if ahead.k == 0 && ahead.step_accuracy <= 0.5 {
            let message = format!(
                "`run.ahead.step_accuracy` is {}, but must be above 0.5 for any vote to help; \
                 measure it with `prime-agents bench steps`, or give `run.ahead.k`",
                ahead.step_accuracy
            );
            return Err(conflict(&["run", "ahead", "step_accuracy"], message));
        }

        let asked = &self.agents.executor.engine;
        if let Some(unknown) = asked.all().iter().find(|name| !self.engines.contains_key(*name)) {
            return Err(SettingsError::UnknownName {
                key: "agents.executor.engine".to_owned(),
                origin: origin_of(origins, &["agents", "executor", "engine"]),
                found: unknown.clone(),
                nearest: nearest(unknown, self.engines.keys().map(String::as_str)).map(Into::into),
                known: self.engines.keys().cloned().collect(),
            });
        }

        for (name, engine) in &self.engines {
            let batch = engine.batch_tokens;
            if batch < engine.sequences_max || batch > engine.context_tokens {
                let message = format!(
                    "`engines.{name}.batch_tokens` is {batch}, but must be at least \
                     `sequences_max` ({}) and at most `context_tokens` ({})",
                    engine.sequences_max, engine.context_tokens
                );
                return Err(conflict(&["engines", name, "batch_tokens"], message));
            }

            // Otherwise `prime-sort` would be a missing file, which only the engine's start
            // reports.
            if let Some(named) = engine.misspelt_model() {
                let origin = origin_of(origins, &["engines", name, "model"]);
                let known = BUILT_IN_MODELS.iter().map(|model| model.name.to_owned());
                return Err(unknown(
                    origin,
                    &format!("engines.{name}.model"),
                    named,
                    known.collect(),
                ));
            }

            if let Err(wrong) = check_template_variables(&engine.template_variables()) {
                let message = format!("`engines.{name}.template_variables`: {wrong}");
                return Err(conflict(&["engines", name, "template_variables"], message));
            }

            if let Some(unknown) = engine.unknown_task() {
                let message = format!(
                    "`engines.{name}.tasks` has \"{unknown}\", which is neither a task nor a \
                     category: see `prime-agents bench list`"
                );
                return Err(conflict(&["engines", name, "tasks"], message));
            }
        }

        let keys = &self.server.keys;
        for (at, key) in keys.iter().enumerate() {
            if RESERVED.contains(&key.name.as_str()) {
                let message = format!(
                    "`server.keys` has a key called \"{}\", which means something else where \
                     people are named: give it another name",
                    key.name
                );
                return Err(conflict(&["server", "keys"], message));
            }
            if let Some(same) =
                keys[..at].iter().find(|other| other.name == key.name || other.sha256 == key.sha256)
            {
                let message = format!(
                    "`server.keys` has \"{}\" and \"{}\", but each key needs a name and a `sha256` \
                     of its own",
                    same.name, key.name
                );
                return Err(conflict(&["server", "keys"], message));
            }
        }

        for (name, preset) in &self.presets {
            let (own, all) = (&preset.budget, &run.budget);
            for (limit, over) in [
                ("steps", over(own.steps, all.steps)),
                ("tokens", over(own.tokens, all.tokens)),
                ("completion_tokens", over(own.completion_tokens, all.completion_tokens)),
                ("cost", over(own.cost, all.cost)),
                ("wall_ms", over(own.wall_ms, all.wall_ms)),
            ] {
                let Some((own, all)) = over else { continue };
                let message = format!(
                    "`presets.{name}.budget.{limit}` is {own}, but must be at most \
                     `run.budget.{limit}`, which is {all}"
                );
                return Err(conflict(&["presets", name, "budget", limit], message));
            }
        }

        self.check_role::<ExecutorAgent>(origins)?;
        self.check_role::<VerifierAgent>(origins)?;
        self.check_role::<CoordinatorAgent>(origins)?;

        self.check_locator(origins)?;

        // The key's format is `words`, because empty means off: the schema cannot check the name.
        let split = &self.agents.split;
        let others = self.agent_names(split.role);
        if !split.other.is_empty() && !others.contains(&split.other) {
            let origin = origin_of(origins, &["agents", "split", "other"]);
            return Err(unknown(origin, "agents.split.other", &split.other, others));
        }

        let executor = &self.agents.executor;
        let asks_engine = ExecutorImplementation::find(&executor.implementation)
            .is_some_and(|implementation| implementation.backing() == Backing::Engine);

        for name in executor.engine_names().iter().filter(|_| asks_engine) {
            let context = self.engines[name].context_tokens;
            // The prompt needs room in the same context.
            if executor.max_tokens >= context {
                let message = format!(
                    "`agents.executor.max_tokens` is {}, but must be below \
                     `engines.{name}.context_tokens`, which is {context}",
                    executor.max_tokens
                );
                return Err(conflict(&["agents", "executor", "max_tokens"], message));
            }
        }

        Ok(())
    }

    /// A hash of everything that determines the course of a run (the configured agents with all
    /// their parts, the prompt templates, and the sections `engines`, `pools` and `run`): 16
    /// hexadecimal digits, independent of the machine and the order of keys.
    #[must_use]
    pub fn hash(&self) -> String {
        let decisive =
            (self.reached(), &self.definitions.templates, &self.engines, &self.pools, &self.run);

        let digest =
            Sha256::digest(serde_json::to_vec(&decisive).expect("invariant: settings serialise"));

        // 64 bits tell configurations apart and still fit a line of output.
        let short = digest.iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
        format!("{short:016x}")
    }

    /// The settings as a configuration file with every key.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("invariant: every option has a form in TOML")
    }
}

impl Default for Settings {
    /// The shipped defaults, with the definitions in the folder `agents` of the working directory,
    /// if there is one: what [`Settings::load`] gives without sources. Panics if a definition there
    /// is invalid; [`Settings::built_in`] reads no folder.
    fn default() -> Self {
        Self::load(&[], std::iter::empty(), &[])
            .expect("the shipped defaults are valid, and so are the definitions in ./agents")
    }
}

/// A preset's limit that is above that of all runs, and the latter, where 0 means that there is
/// none.
fn over<T: Copy + Default + PartialOrd + ToString>(
    own: Option<T>,
    all: T,
) -> Option<(String, String)> {
    let own = own.filter(|own| all > T::default() && *own > all)?;
    Some((own.to_string(), all.to_string()))
}

/// The lowest layer: for every engine that a layer names, the shipped `engines.tiny` without its
/// model.
fn engine_template(layers: &[Layer]) -> Layer {
    let engines = |layer: &Layer| table(layer.0.get("engines")?).cloned();
    let Some(mut template) =
        layers.first().and_then(engines).and_then(|shipped| table(shipped.get("tiny")?).cloned())
    else {
        return Layer::default();
    };
    // An engine must say which model it is: inheriting one would hide the omission.
    template.remove("model");

    let names = layers
        .iter()
        .filter_map(engines)
        .flat_map(|engines| engines.into_keys().collect::<Vec<_>>());

    let all: Map<String, Value> =
        names.map(|name| (name, Value::new(None, template.clone()))).collect();
    Layer(Map::from_iter([("engines".to_owned(), Value::new(None, all))]))
}

/// `model` is the only option of an engine without a default.
fn require_models(merged: &Value) -> Result<(), SettingsError> {
    let engines = table(merged).and_then(|root| table(root.get("engines")?));
    let mut engines: Vec<_> = engines.into_iter().flatten().collect();
    // Sorted, so that the first error does not depend on hashing.
    engines.sort_by_key(|(name, _)| *name);

    for (name, engine) in engines {
        let Some(keys) = table(engine) else { continue };
        if !keys.contains_key("model") {
            // The template's keys come from the shipped defaults; name where the user began this
            // entry.
            let origins = keys
                .values()
                .filter_map(|value| value.origin())
                .filter(|from| !from.starts_with("config/default.toml:"));

            return Err(SettingsError::Missing {
                key: format!("engines.{name}.model"),
                origin: origins.min().unwrap_or("the settings").to_owned(),
                example: "model = \"path/to/model.gguf\"".to_owned(),
            });
        }
    }
    Ok(())
}

fn table(value: &Value) -> Option<&Map<String, Value>> {
    match &value.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}

pub(super) fn origin_of(root: &Value, key: &[&str]) -> String {
    let found = key.iter().try_fold(root, |at, part| table(at)?.get(*part));
    found.map_or_else(|| "the settings".to_owned(), origin)
}

#[cfg(test)]
mod tests {
    use super::super::definitions::BUILT_IN;
    use super::*;

    #[test]
    fn by_default_the_executor_asks_every_built_in_model() {
        let settings = Settings::built_in();
        let executor = settings.agents.executor.engine.all();
        for model in BUILT_IN_MODELS {
            let engine = settings
                .engines
                .iter()
                .find(|(_, engine)| engine.model.as_os_str() == model.name)
                .map(|(name, _)| name);
            let engine = engine.unwrap_or_else(|| panic!("no engine has the model {}", model.name));
            assert!(executor.contains(engine), "the executor does not ask `{engine}`");
        }
        assert_eq!(executor.len(), BUILT_IN_MODELS.len());
    }

    #[test]
    fn the_built_in_settings_read_no_folder_of_definitions() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("executor")).unwrap();
        std::fs::write(folder.path().join("executor/mine.toml"), "implementation = 3").unwrap();

        let merged = |sources| {
            let layers = [
                Layer::text(DEFAULT_TOML, DEFAULT_TOML_PATH),
                Layer::set(
                    &format!("agents.folder={}", folder.path().display()),
                    Settings::shared_schema(),
                ),
            ];
            Settings::merged(layers.map(Result::unwrap).into(), sources)
        };
        assert!(merged(DefinitionSources::WithFolder).is_err());
        assert!(merged(DefinitionSources::BuiltIn).is_ok());

        let Definitions { executors, verifiers, coordinators, templates } =
            Settings::built_in().definitions;
        let origins = (executors.values().map(|defined| &defined.origin))
            .chain(verifiers.values().map(|defined| &defined.origin))
            .chain(coordinators.values().map(|defined| &defined.origin))
            .chain(templates.values().map(|template| &template.origin));
        assert!(origins.into_iter().all(|origin| origin == BUILT_IN));
    }
}
