//! Checkpoints: everything that a run needs to continue as if it had not stopped, in one file that
//! is replaced atomically. A crash leaves the old file or the new one.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    TrainError, all_hold, corrections::Corrections, optimizer::Moments, recipe::Architecture,
    sample::Encoded, vocabulary::Vocabulary,
};

/// Changes with the fields or their order, neither of which the encoding states.
const FORMAT: &str = "prime-agents sft checkpoint 6";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    format: String,
    /// Must equal the recipe's, or the weights would have another meaning.
    pub architecture: Architecture,
    pub seed: u64,
    pub tasks: Vec<String>,
    /// Words of the vocabulary, in the order of their tokens.
    pub words: Vec<String>,
    /// Number of steps done; also selects the random stream of the next one.
    pub step: u64,
    pub tokens: u64,
    pub elapsed_s: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
    pub weights: Vec<f32>,
    /// Their running average; empty if none is kept.
    pub average: Vec<f32>,
    first_moments: Vec<f32>,
    second_moments: Vec<f32>,
    /// Sampling weight of each task.
    pub mix: Vec<f64>,
    /// The sampling weights of the current pool.
    pub pool_mix: Vec<f64>,
    /// The corrections when the current pool was drawn.
    pub corrections: Corrections,
    /// Samples of the current pool that the model got wrong; they become corrections after it.
    pub missed: Vec<Encoded>,
}

impl Checkpoint {
    /// A run that has not started.
    pub fn fresh(
        architecture: Architecture,
        seed: u64,
        tasks: Vec<String>,
        vocabulary: &Vocabulary,
        weights: Vec<f32>,
    ) -> Self {
        let moments = vec![0.0; weights.len()];
        Self {
            format: FORMAT.to_owned(),
            architecture,
            seed,
            mix: vec![1.0; tasks.len()],
            pool_mix: vec![1.0; tasks.len()],
            corrections: Corrections::new(tasks.len()),
            missed: Vec::new(),
            tasks,
            words: vocabulary.words().to_vec(),
            step: 0,
            tokens: 0,
            elapsed_s: 0.0,
            cpu_s: 0.0,
            weights,
            average: Vec::new(),
            first_moments: moments.clone(),
            second_moments: moments,
        }
    }

    pub fn take_moments(&mut self) -> Moments {
        Moments {
            first: std::mem::take(&mut self.first_moments),
            second: std::mem::take(&mut self.second_moments),
        }
    }

    pub fn save(&mut self, path: &Path, moments: Moments) -> Result<(), TrainError> {
        self.first_moments = moments.first;
        self.second_moments = moments.second;
        let bytes = postcard::to_stdvec(self).map_err(|e| Self::refuse(path, &e.to_string()))?;
        replace(path, &bytes)
    }

    /// Reads a checkpoint and checks that it belongs to this architecture, seed, list of tasks and
    /// vocabulary.
    pub fn load(
        path: &Path,
        architecture: Architecture,
        seed: u64,
        tasks: &[String],
        vocabulary: &Vocabulary,
    ) -> Result<Self, TrainError> {
        let bytes = fs::read(path).map_err(|source| TrainError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;

        let refuse = |reason: &str| TrainError::Checkpoint {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };

        let found: Self = postcard::from_bytes(&bytes).map_err(|e| refuse(&e.to_string()))?;
        let len = super::layout::Layout::new(architecture, vocabulary.size()).len;

        let rules = [
            (found.format == FORMAT, "its format is unknown"),
            (found.architecture == architecture, "the model differs"),
            (found.seed == seed, "the seed differs"),
            (
                found.tasks == tasks
                    && found.mix.len() == tasks.len()
                    && found.pool_mix.len() == tasks.len()
                    && found.corrections.tasks() == tasks.len(),
                "the tasks differ",
            ),
            (found.words == vocabulary.words(), "the vocabulary differs"),
            (
                [&found.weights, &found.first_moments, &found.second_moments]
                    .iter()
                    .all(|v| v.len() == len)
                    && (found.average.is_empty() || found.average.len() == len),
                "the number of parameters differs",
            ),
        ];

        all_hold(&rules).map_err(refuse)?;
        Ok(found)
    }

    fn refuse(path: &Path, reason: &str) -> TrainError {
        TrainError::Checkpoint { path: path.to_owned(), reason: reason.to_owned() }
    }
}

/// The path with `suffix` appended to its file name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The checkpoint of a training that writes the model `out`.
pub fn path_of(out: &Path) -> PathBuf {
    beside(out, ".checkpoint")
}

/// Writes a file atomically and durably.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    let partial = beside(path, ".partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        // Before the rename, or a crash could leave an empty file under the name.
        file.sync_all()?;
        fs::rename(&partial, path)?;
        // The rename is durable only once the directory is.
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| TrainError::Io { action: "write", path: path.to_owned(), source })
}
