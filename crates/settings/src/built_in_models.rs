//! The models inside the executable: their names, and what each has learnt. Opens nothing.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

/// A value of `model` that is no path.
pub struct BuiltInModel {
    pub name: &'static str,
    /// Slugs of the tasks that it has learnt.
    pub tasks: Vec<String>,
}

/// Tasks of a recipe that its model has not learnt well enough to be asked (models/README.md).
const UNLEARNT_STRUCTURES: &[&str] = &["assembly-line", "lru-cache"];
const UNLEARNT_ADVANCED: &[&str] = &["bucket-sort", "counting-sort", "lru-cache"];
const UNLEARNT_SYMBOLS: &[&str] = &["file-system", "dependency-sat", "meeting-scheduler"];
const UNLEARNT_NUMBERS: &[&str] = &["simplex-method"];
const UNLEARNT_LARGE: &[&str] = &["bucket-sort", "comb-sort"];
const UNLEARNT_HYBRIDS: &[&str] = &["timsort", "block-sort"];

/// All of them.
pub static BUILT_IN_MODELS: LazyLock<[BuiltInModel; 14]> = LazyLock::new(|| {
    [
        BuiltInModel::new("prime-tiny", include_str!("../../../models/prime-tiny.toml"), &[]),
        BuiltInModel::new(
            "prime-automata",
            include_str!("../../../models/prime-automata.toml"),
            &[],
        ),
        BuiltInModel::new("prime-sorts", include_str!("../../../models/prime-sorts.toml"), &[]),
        BuiltInModel::new(
            "prime-structures",
            include_str!("../../../models/prime-structures.toml"),
            UNLEARNT_STRUCTURES,
        ),
        BuiltInModel::new(
            "prime-advanced",
            include_str!("../../../models/prime-advanced.toml"),
            UNLEARNT_ADVANCED,
        ),
        BuiltInModel::new(
            "prime-symbols",
            include_str!("../../../models/prime-symbols.toml"),
            UNLEARNT_SYMBOLS,
        ),
        BuiltInModel::new(
            "prime-machines",
            include_str!("../../../models/prime-machines.toml"),
            &[],
        ),
        BuiltInModel::new(
            "prime-numbers",
            include_str!("../../../models/prime-numbers.toml"),
            UNLEARNT_NUMBERS,
        ),
        BuiltInModel::new(
            "prime-large",
            include_str!("../../../models/prime-large.toml"),
            UNLEARNT_LARGE,
        ),
        BuiltInModel::new("prime-tables", include_str!("../../../models/prime-tables.toml"), &[]),
        BuiltInModel::new("prime-puzzles", include_str!("../../../models/prime-puzzles.toml"), &[]),
        BuiltInModel::new(
            "prime-hybrids",
            include_str!("../../../models/prime-hybrids.toml"),
            UNLEARNT_HYBRIDS,
        ),
        BuiltInModel::new("prime-queens", include_str!("../../../models/prime-queens.toml"), &[]),
        BuiltInModel::new("prime-routes", include_str!("../../../models/prime-routes.toml"), &[]),
    ]
});

impl BuiltInModel {
    /// The model that was trained by this recipe, on some tasks in vain.
    fn new(name: &'static str, recipe: &str, not_learnt: &[&str]) -> Self {
        #[derive(Deserialize)]
        struct Recipe {
            data: Data,
            #[serde(default)]
            rehearsal: Data,
        }
        #[derive(Default, Deserialize)]
        struct Data {
            tasks: Vec<String>,
        }
        let recipe: Recipe =
            toml::from_str(recipe).expect("invariant: the recipe in the executable was trained by");
        let mut tasks = [recipe.data.tasks, recipe.rehearsal.tasks].concat();
        tasks.retain(|task| !not_learnt.contains(&task.as_str()));
        Self { name, tasks }
    }

    /// The model that a value of `model` names. A file of that name is `./prime-tiny`.
    pub fn find(model: &Path) -> Option<&'static Self> {
        BUILT_IN_MODELS.iter().find(|known| model.as_os_str() == known.name)
    }
}
