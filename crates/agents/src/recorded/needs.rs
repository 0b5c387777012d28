//! The needs of a run: what the node that executes it must have, as texts that nodes compare and
//! people read. Their form never changes: runs keep them, and nodes of two versions work side by
//! side.

use std::collections::BTreeSet;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::restore::missing_program;
use super::{RecordedAgent, RecordedAgents, RecordedPool, file_digest};
use crate::pools::Environment;
use prime_settings::Settings;

/// Number of digits of a digest that tell pools of one name apart.
const POOL_DIGITS: usize = 12;
const PROGRAM: &str = "program ";
const ADAPTER: &str = "adapter ";
const RECORDING: &str = "recording ";
const WITH_DIGEST: &str = " with SHA-256 ";
const MODEL: &str = " with the model whose SHA-256 is ";

/// The need of an engine, with a certain model or, without a digest, any.
pub fn engine_need(name: &str, digest: Option<&str>) -> String {
    let model = digest.map_or_else(String::new, |digest| format!("{MODEL}{digest}"));
    format!("engine `{name}`{model}")
}

fn pool(name: &str, pool: &RecordedPool) -> String {
    let RecordedPool { api, dialect, extra, models } = pool;
    let all = serde_json::to_string(&(api, dialect, extra, models))
        .expect("invariant: options serialise");

    let digest = format!("{:x}", Sha256::digest(all));

    format!("pool `{name}` of {} with options {}", models.join(", "), &digest[..POOL_DIGITS])
}

impl RecordedAgent {
    fn program(&self) -> Option<&str> {
        self.options.get("program")?.get("command")?.get(0)?.as_str()
    }
}

impl RecordedAgents {
    /// Engines with their models, adapters, pools, programs and recordings, each as one text;
    /// sorted.
    pub fn needs(&self) -> Vec<String> {
        let agents = self.roles().flat_map(|(_, role)| role.agents.values());

        // A set, because agents share programs.
        let mut needs: BTreeSet<String> = agents
            .filter_map(RecordedAgent::program)
            .map(|program| format!("{PROGRAM}{program}"))
            .collect();

        needs
            .extend(self.engines.iter().map(|(name, digest)| engine_need(name, digest.as_deref())));
        needs.extend(self.pools.iter().map(|(name, recorded)| pool(name, recorded)));
        let adapters = self.adapters.iter();
        needs
            .extend(adapters.map(|(path, digest)| format!("{ADAPTER}{path}{WITH_DIGEST}{digest}")));
        let recordings = self.recordings.iter();
        needs.extend(
            recordings.map(|(path, digest)| format!("{RECORDING}{path}{WITH_DIGEST}{digest}")),
        );

        needs.into_iter().collect()
    }
}

/// The needs in `asked` that a process with these settings meets, and those that its pools meet;
/// sorted. `digest_of` returns the SHA-256 of the model of a configured engine.
pub fn needs_met(
    asked: &[String],
    settings: &Settings,
    environment: &Environment,
    digest_of: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let pools =
        settings.pools.iter().map(|(name, configured)| pool(name, &RecordedPool::of(configured)));
    let mut met: BTreeSet<String> = pools.collect();

    let has_engine = |need: &str| {
        let named = settings
            .engines
            .keys()
            .find_map(|name| Some((name, need.strip_prefix(&engine_need(name, None))?)));
        named.is_some_and(|(name, model)| match model.strip_prefix(MODEL) {
            Some(digest) => digest_of(name).is_some_and(|found| found == digest),
            None => model.is_empty(),
        })
    };

    let has_file = |kind: &str, need: &str| {
        let named = need.strip_prefix(kind).and_then(|named| named.rsplit_once(WITH_DIGEST));
        named.is_some_and(|(path, digest)| {
            file_digest(Path::new(path)).is_ok_and(|found| found == digest)
        })
    };

    let has_program = |need: &str| {
        let program = need.strip_prefix(PROGRAM);
        program.is_some_and(|program| {
            missing_program(Some(&[program.to_owned()]), environment).is_none()
        })
    };

    let is_met = |need: &&String| {
        has_engine(need)
            || has_program(need)
            || has_file(RECORDING, need)
            || has_file(ADAPTER, need)
    };
    met.extend(asked.iter().filter(is_met).cloned());
    met.into_iter().collect()
}
