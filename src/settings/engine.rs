//! An engine: a model on a device. Finds the model's file; opens nothing.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use prime_engine::{Devices, Isolation, KvPool};

/// Folders above the executable that are searched: `target/<triple>/release/` lies three below a checkout, a test's
/// executable `target/<triple>/release/deps/` four.
const FOLDERS_ABOVE_EXECUTABLE: usize = 5;

/// One entry of `engines`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The model, a GGUF file. A relative path in a file given by `--config` starts at that file's folder; elsewhere at
    /// the working directory and, when it is not there, at the folders above the executable (so a build finds the
    /// `models/` of its checkout). A missing file is reported when the engine starts, with every path that was tried.
    pub model: PathBuf,
    /// Where the model runs: `cpu`, `CUDA<n>` (the n-th GPU in the order of the PCI bus, or of `CUDA_VISIBLE_DEVICES`
    /// where that is set), a GPU's UUID (`GPU-…` or `MIG-…`, as `nvidia-smi -L` prints it; the safe choice, because it
    /// survives a new order of the GPUs), or its PCI id (`pci:0000:65:00.0`). A list of GPUs shares the model's layers
    /// among them: `device = ["CUDA0", "CUDA1"]`. Several engines may be on one device.
    pub device: Devices,
    /// `process` (a worker process of its own: a crash of llama.cpp ends only the worker, which is started again) or
    /// `thread` (inside this process; for tests and small tools).
    pub isolation: Isolation,
    /// How sequences divide the KV cache: `shared` (one pool; a turn may be as long as all of it) or `split` (an equal
    /// part each, in steps of 256 tokens; on a CPU much faster with many sequences, and no turn can be longer than a
    /// part).
    pub kv: KvPool,
    /// Size of the KV cache of all sequences together, in tokens.
    #[schemars(range(min = 64, max = 16_777_216))]
    pub context_tokens: u32,
    /// Most sequences alive at once. More trajectories than this wait for their turn.
    #[schemars(range(min = 1, max = 256))]
    pub sequences_max: u32,
    /// Most tokens in one decode. At least `sequences_max`, at most `context_tokens`.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch_tokens: u32,
    /// Sequences beyond `sequences_max` that keep what was computed for turns to come; together at most 256. With `shared`
    /// they cost nothing, with `split` each takes a part of the KV cache. Sequences without a turn keep in any case.
    #[schemars(range(min = 0, max = 255))]
    pub kept_max: u32,
    /// Most tokens of prompts in a decode while other turns generate, so that a long prompt does not hold them up;
    /// 0 = a quarter of `batch_tokens`.
    #[schemars(range(min = 0, max = 65_536))]
    pub prefill_tokens: u32,
    /// CPU threads of a decode; 0 = chosen from the number of cores. More threads than free cores is much slower.
    #[schemars(range(min = 0, max = 1_024))]
    pub threads: u32,
    /// Longest time in milliseconds that a worker with turns may be silent before it is killed and its turns are sent
    /// again. Less once it is known how long decodes take: 50 times their 99th percentile, and at least 5 seconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub deadline_ms: u64,
    /// Longest time in milliseconds until the worker has loaded the model and decoded one token.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub start_timeout_ms: u64,
    /// Most restarts of the worker within `restart_window_ms`; one more, and the engine is given up.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Time in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
}

/// No file where the configuration says that a model is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model file at {}; set `model` of this engine to a GGUF file", list(tried))]
pub struct ModelMissing {
    /// Every path that was tried, in order.
    pub tried: Vec<PathBuf>,
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
}

impl Engine {
    /// The model's file: `model` as it is, else, when it is relative, below the folders above `executable` (pass
    /// `std::env::current_exe().ok()`; `None` searches the working directory only).
    ///
    /// # Errors
    /// No such file exists at any of these places.
    pub fn find_model(&self, executable: Option<&Path>) -> Result<PathBuf, ModelMissing> {
        let above = executable
            .filter(|_| self.model.is_relative())
            .into_iter()
            .flat_map(|executable| executable.ancestors().skip(1).take(FOLDERS_ABOVE_EXECUTABLE));
        let mut tried = vec![self.model.clone()];
        tried.extend(above.map(|folder| folder.join(&self.model)));
        match tried.iter().find(|path| path.is_file()) {
            Some(found) => Ok(found.clone()),
            None => Err(ModelMissing { tried }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_model_is_found_above_the_executable_and_a_missing_one_names_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("models/some-model-of-this-test.gguf");
        let executable = folder.path().join("target/release/deps/prime-agents");
        let mut engine = Settings::default().engines["tiny"].clone();
        engine.model = PathBuf::from("models/some-model-of-this-test.gguf");

        let missing = engine.find_model(Some(&executable)).unwrap_err();
        assert_eq!(missing.tried[0], engine.model);
        assert!(missing.tried.contains(&model));
        assert!(missing.to_string().contains("models/some-model-of-this-test.gguf or "));

        std::fs::create_dir_all(folder.path().join("models")).unwrap();
        std::fs::write(&model, "not read here").unwrap();
        assert_eq!(engine.find_model(Some(&executable)), Ok(model.clone()));
        assert!(engine.find_model(None).is_err(), "without an executable only the working directory counts");

        engine.model = folder.path().join("absolute.gguf");
        assert_eq!(engine.find_model(Some(&executable)).unwrap_err().tried, [engine.model.clone()]);
    }
}
