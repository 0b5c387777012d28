//! `--model`: a model of the user's own as the executor, a GGUF file or an OpenAI-compatible
//! server.
//!
//! It becomes options of the configuration, so that everything else is as if the user had written
//! them; `--set` overrides each. What was chosen is said in one line.

mod file;
mod idle_cores;
mod server;

use anyhow::bail;
use clap::Args;

use super::Configuration;
use super::output::note;
use prime_models::BuiltInModel;
use prime_settings::{ExecutorAgent, Settings};

/// The name of the engine or pool.
const NAME: &str = "model";

/// The configuration, and a model of the user's own.
#[derive(Args, Clone, Debug)]
pub struct OwnModel {
    /// Your own model as the executor: a GGUF file, or the base URL of an OpenAI-compatible server
    /// such as http://127.0.0.1:8080/v1 (then #NAME chooses one of its models)
    #[arg(long, value_name = "FILE|URL")]
    model: Option<String>,
    /// An adapter of the executor's model: a GGUF file of a LoRA, or the name of one at the server
    #[arg(long, value_name = "FILE|NAME")]
    adapter: Option<String>,
    #[command(flatten)]
    configuration: Configuration,
}

/// The options that stand for a model, and the line that says what was chosen.
#[derive(Debug, PartialEq, Eq)]
struct Chosen {
    sets: Vec<String>,
    line: String,
}

/// An option as `--set` takes it. JSON's strings and lists are also valid TOML.
fn set(key: &str, value: impl Into<serde_json::Value>) -> String {
    format!("{key}={}", value.into())
}

impl OwnModel {
    /// The configuration in which the model is the executor.
    ///
    /// # Errors
    /// When the file or the server cannot be used, with what to do.
    pub fn resolved(&self) -> anyhow::Result<Configuration> {
        let mut configuration = self.configuration.clone();
        let adapter =
            self.adapter.iter().map(|adapter| set("agents.executor.adapter", adapter.as_str()));
        // Before the user's own options, which win.
        configuration.sets.splice(0..0, adapter);
        let Some(model) = &self.model else {
            self.check_adapter(&configuration)?;
            return Ok(configuration);
        };

        let chosen = match model {
            url if url.starts_with("http://") || url.starts_with("https://") => {
                let (listed, dialect) = server::asked(url)?;
                server::chosen(url, &listed, dialect)?
            }
            name if BuiltInModel::find(name.as_ref()).is_some() => built_in(name),
            path => file::chosen(path.as_ref(), self.adapter.as_deref().map(AsRef::as_ref))?,
        };
        note!("{}", chosen.line);
        configuration.sets.splice(0..0, chosen.sets);
        Ok(configuration)
    }

    /// Checks that the configured executor is a model that can have the adapter: without `--model`
    /// it may be none, and its turns would fail one by one.
    fn check_adapter(&self, configuration: &Configuration) -> anyhow::Result<()> {
        let Some(adapter) = &self.adapter else { return Ok(()) };
        let settings = configuration.load()?;
        let name = settings.agents.executor.implementation.clone();
        let executor = settings.configured::<ExecutorAgent>();
        let what_to_do = "name its model with --model FILE";

        let Some(adapters) = executor.adapters() else {
            bail!("--adapter {adapter}: the executor `{name}` asks no model: {what_to_do}")
        };
        if adapters.own != adapter {
            bail!(
                "--adapter {adapter}: the executor `{name}` is a definition, whose own options say \
                 which adapter it has: write it there, or {what_to_do}"
            );
        }
        let is_built_in = |engine: &String| {
            settings
                .engines
                .get(engine)
                .is_some_and(|engine| BuiltInModel::find(&engine.model).is_some())
        };
        if let Some(engine) = executor.engines().iter().find(|engine| is_built_in(engine)) {
            bail!(
                "--adapter {adapter}: the executor `{name}` asks the built-in model of the engine \
                 `{engine}`, of which there are no adapters: {what_to_do}"
            );
        }
        Ok(())
    }

    /// The settings of that configuration.
    ///
    /// # Errors
    /// Like [`OwnModel::resolved`], and when the configuration is not valid.
    pub fn load(&self) -> anyhow::Result<Settings> {
        Ok(self.resolved()?.load()?)
    }
}

/// A model that is built in: its prompt and its grammar are the defaults.
fn built_in(name: &str) -> Chosen {
    Chosen {
        sets: vec![
            set(&format!("engines.{NAME}.model"), name),
            set("agents.executor.implementation", "llama"),
            set("agents.executor.engine", NAME),
        ],
        line: format!("model {name}: built in, with the prompt that it was trained on"),
    }
}
