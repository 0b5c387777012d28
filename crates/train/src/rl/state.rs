//! Everything that a run of reinforcement learning needs to continue as if it had not stopped, in
//! one file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::critic::Critic;
use super::evaluation::Held;
use super::recipe::RlRecipe;
use crate::checkpoint::replace;
use crate::optimizer::Moments;
use crate::vocabulary::Vocabulary;
use crate::{TrainError, all_hold};

const FORMAT: &str = "prime-agents rl checkpoint 1";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    format: String,
    /// The recipe as JSON, because a run continues only under the recipe that it began with. The
    /// budget may be extended.
    recipe: String,
    /// Words of the vocabulary.
    words: Vec<String>,
    /// Number of iterations done; also selects the random stream of the next one.
    pub iteration: u64,
    pub cpu_s: f64,
    pub weights: Vec<f32>,
    pub moments: Moments,
    /// Number of optimizer steps done.
    pub steps: u64,
    pub critic: Critic,
    /// Held-out results of the initial policy, of the one that is kept, and the latest.
    pub initial: Vec<Held>,
    pub kept: Vec<Held>,
    pub latest: Vec<Held>,
    pub kept_iteration: u64,
}

/// The recipe without the fields that a resumed run may change.
fn identity(recipe: &RlRecipe) -> String {
    let mut recipe = serde_json::to_value(recipe).expect("invariant: recipes serialise");
    for field in ["budget", "evaluation", "stop", "export"] {
        recipe.as_object_mut().expect("invariant: a recipe is an object").remove(field);
    }
    recipe.to_string()
}

impl State {
    /// A run that has not started.
    pub fn fresh(recipe: &RlRecipe, vocabulary: &Vocabulary, weights: Vec<f32>) -> Self {
        let moments = Moments { first: vec![0.0; weights.len()], second: vec![0.0; weights.len()] };
        Self {
            format: FORMAT.to_owned(),
            recipe: identity(recipe),
            words: vocabulary.words().to_vec(),
            iteration: 0,
            cpu_s: 0.0,
            weights,
            moments,
            steps: 0,
            critic: Critic::new(recipe.model.d_model),
            initial: Vec::new(),
            kept: Vec::new(),
            latest: Vec::new(),
            kept_iteration: 0,
        }
    }

    /// Writes the state to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let refuse = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
        replace(path, &postcard::to_stdvec(self).map_err(|error| refuse(error.to_string()))?)
    }

    /// Reads the state of a run with this recipe and vocabulary.
    ///
    /// # Errors
    /// If the file cannot be read, or belongs to another recipe or vocabulary.
    pub fn load(
        path: &Path,
        recipe: &RlRecipe,
        vocabulary: &Vocabulary,
    ) -> Result<Self, TrainError> {
        let bytes = std::fs::read(path).map_err(|source| TrainError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;

        let refuse = |reason: &str| TrainError::Checkpoint {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let found: Self =
            postcard::from_bytes(&bytes).map_err(|error| refuse(&error.to_string()))?;

        let parameters = crate::layout::Layout::new(recipe.model, vocabulary.size()).len;
        let sizes = [found.weights.len(), found.moments.first.len(), found.moments.second.len()];

        let rules = [
            (found.format == FORMAT, "its format is unknown"),
            (
                found.recipe == identity(recipe),
                "the recipe differs in more than budget, evaluation, stop and export",
            ),
            (found.words == vocabulary.words(), "the vocabulary differs"),
            (sizes.iter().all(|size| *size == parameters), "the number of parameters differs"),
        ];

        all_hold(&rules).map_err(refuse)?;
        Ok(found)
    }
}
