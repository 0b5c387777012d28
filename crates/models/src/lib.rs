//! The models inside the executable. `models/built-in.toml` lists them; a new one is an entry
//! there, a recipe and a GGUF file. Loads nothing.

#![warn(missing_docs)]

mod cache;

use std::fmt;
use std::path::Path;

pub use cache::CacheError;

/// A model in the executable.
pub struct BuiltInModel {
    /// A value of an engine's `model` that is not a path.
    pub name: &'static str,
    /// Slugs of the tasks that it has learnt.
    pub tasks: &'static [&'static str],
    /// Its GGUF file.
    bytes: &'static [u8],
}

/// All built-in models.
pub static BUILT_IN_MODELS: &[BuiltInModel] = include!(concat!(env!("OUT_DIR"), "/models.rs"));

impl BuiltInModel {
    /// The model that a value of `model` names. A file of that name is `./prime-tiny`.
    pub fn find(model: &Path) -> Option<&'static Self> {
        BUILT_IN_MODELS.iter().find(|known| model.as_os_str() == known.name)
    }
}

impl fmt::Debug for BuiltInModel {
    /// Without its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltInModel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for BuiltInModel {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for BuiltInModel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_knows_what_its_recipe_taught_and_it_learnt() {
        let structures = BuiltInModel::find(Path::new("prime-structures")).expect("built in");
        assert!(structures.tasks.contains(&"union-find"), "{:?}", structures.tasks);
        assert!(!structures.tasks.contains(&"lru-cache"), "trained on it, but unlearnt");
        assert_eq!(BuiltInModel::find(Path::new("./prime-tiny")), None, "a path");
    }
}
