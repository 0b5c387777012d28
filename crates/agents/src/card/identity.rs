//! The verifier that a card describes: everything that determines its verdicts, except its name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::recorded::{RecordedAgent, RecordedAgents, file_digest};
use prime_bench::tasks::CheckedKinds;
use prime_protocol::Role;
use prime_settings::Settings;

/// Options that are resolved into other parts of the identity.
const RESOLVED: [&str; 5] = ["engine", "pool", "program", "kinds", "ensemble"];

/// Everything that determines a verifier's verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifierIdentity {
    /// Name of its implementation, such as `rules` or `llama`.
    pub implementation: String,
    /// The kinds of constraints that it checks, or is declared to check; null if it names none.
    pub kinds: Option<CheckedKinds>,
    /// The SHA-256 of each engine's model file, sorted; null if it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_digests: Vec<Option<String>>,
    /// Names of the models on servers, as the servers call them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_models: Vec<String>,
    /// The SHA-256 of the program's command line and of the files that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_digest: Option<String>,
    /// The SHA-256 of each prompt template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, String>,
    /// The other options that its implementation uses.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// The verifiers that it is composed of, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<VerifierIdentity>,
}

/// The SHA-256 of a program's command line and of the files that it names.
fn program_digest(command: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in command {
        // The length keeps `a b` and `ab` apart.
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
        let path = Path::new(word);
        if path.is_file()
            && let Ok(digest) = file_digest(path)
        {
            hash.update(digest);
        }
    }
    format!("{:x}", hash.finalize())
}

impl VerifierIdentity {
    /// The identity of the configured verifier; `None` if its record lacks it.
    pub fn of(settings: &Settings, recorded: &RecordedAgents) -> Option<Self> {
        let name = &settings.agents.verifier.implementation;
        Self::of_agent(name, recorded, settings)
    }

    fn of_agent(name: &str, recorded: &RecordedAgents, settings: &Settings) -> Option<Self> {
        let agent: &RecordedAgent = recorded.verifier.agents.get(name)?;
        let option = |key: &str| agent.options.get(key);
        let words = |value: Option<&Value>| -> Vec<String> {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };

        let kinds = option("kinds").and_then(|kinds| serde_json::from_value(kinds.clone()).ok());
        let mut model_digests: Vec<_> = agent
            .engines(Role::Verifier)
            .into_iter()
            .map(|engine| recorded.engines.get(engine).cloned().flatten())
            .collect();
        model_digests.sort();

        let pool = option("pool").and_then(Value::as_str);
        let server_models = pool
            .and_then(|name| recorded.pools.get(name))
            .map(|pool| pool.models.clone())
            .unwrap_or_default();

        let command = words(option("program").and_then(|program| program.get("command")));
        let program_digest = (!command.is_empty())
            .then(|| program_digest(&command.iter().map(String::as_str).collect::<Vec<_>>()));

        let found = settings.agent::<prime_settings::VerifierAgent>(name)?;
        let digest = |name: String| {
            let text = recorded.templates.get(&name)?;
            Some((name, format!("{:x}", Sha256::digest(text))))
        };
        let templates = found.templates().into_iter().filter_map(digest).collect();

        let members = words(option("ensemble").and_then(|ensemble| ensemble.get("members")))
            .iter()
            .map(|member| Self::of_agent(member, recorded, settings))
            .collect::<Option<Vec<_>>>()?;

        let is_other = |key: &&String| !RESOLVED.contains(&key.as_str());
        Some(Self {
            implementation: agent.implementation.clone(),
            kinds,
            model_digests,
            server_models,
            program_digest,
            templates,
            options: agent
                .options
                .iter()
                .filter(|(key, _)| is_other(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            members,
        })
    }
}

impl fmt::Display for VerifierIdentity {
    /// For example `rules, kinds sound` or `llama, model 0a1b2c3d4e5f, verdict token`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.implementation)?;
        if let Some(kinds) = self.kinds {
            write!(f, ", kinds {kinds}")?;
        }
        for digest in &self.model_digests {
            match digest {
                Some(digest) => write!(f, ", model {}", digest.get(..12).unwrap_or(digest))?,
                None => write!(f, ", a model without a digest")?,
            }
        }
        for model in &self.server_models {
            write!(f, ", model {model}")?;
        }
        if let Some(digest) = &self.program_digest {
            write!(f, ", program {}", digest.get(..12).unwrap_or(digest))?;
        }
        for (key, value) in &self.options {
            match value {
                Value::String(text) if text.is_empty() => {}
                Value::String(text) => write!(f, ", {key} {text}")?,
                other => write!(f, ", {key} {other}")?,
            }
        }
        for member in &self.members {
            write!(f, "; {member}")?;
        }
        Ok(())
    }
}
