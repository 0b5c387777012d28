//! Recipes: their defaults, the shipped ones, and refused ones.

use prime_bench::tasks::Difficulty;

use super::recipe::{Algorithm, Curriculum, RlRecipe};

const LEAST: &str = "name = 'a'\nseed = 1\ninit = 'models/prime-tiny.gguf'\nbudget = { iterations = 3 }\n[data]\ntasks = ['n-queens']\n";

#[test]
fn what_a_recipe_leaves_out_has_a_default() {
    let recipe = RlRecipe::from_toml(LEAST).expect("a valid recipe");
    assert_eq!(recipe.algorithm, Algorithm::Grpo { scale: None });
    assert_eq!(recipe.data.curriculum, Curriculum::Levels(Difficulty::ALL.to_vec()));
    assert_eq!((recipe.rollout.group, recipe.reward.weights.task), (8, 10.0));
}

#[test]
fn the_shipped_recipes_agree_with_those_of_their_starts() {
    for (recipe, before) in [
        (
            include_str!("../../../../models/prime-queens.toml"),
            include_str!("../../../../models/prime-queens-1.toml"),
        ),
        (
            include_str!("../../../../models/prime-puzzles.toml"),
            include_str!("../../../../models/prime-puzzles-6.toml"),
        ),
        (
            include_str!("../../../../models/prime-twenty-four.toml"),
            include_str!("../../../../models/prime-twenty-four-1.toml"),
        ),
    ] {
        let recipe = RlRecipe::from_toml(recipe).expect("valid");
        let before = crate::Recipe::from_toml(before).expect("valid");
        let rehearsed = recipe.rehearsal.map(|plan| plan.tasks).unwrap_or_default();
        assert_eq!(
            ([rehearsed, recipe.data.tasks].concat(), recipe.model),
            (before.data.tasks, before.model)
        );
        assert!(before.data.choices > 0.0, "a start with something to choose from");
    }
}

#[test]
fn bad_recipes_are_refused_with_the_field() {
    for (more, part) in [
        ("[rollout]\ngroup = 1\n", "rollout.group"),
        ("[rollout]\ntemperature = 0.0\n", "rollout.temperature"),
        ("[rollout]\nunit = 'trajectory'\n[reward]\nsource = 'oracle'\n", "reward.source"),
        ("[algorithm]\nppo = { discount = 1.5, lambda = 1.0, value_clip = 0.2 }\n", "algorithm"),
        ("[algorithm.grpo]\nscal = 1.0\n", "scal"),
        ("[rollouts]\n", "rollouts"),
        ("[objective]\nclip = 2.0\n", "objective.clip"),
        ("[rollout]\nrejections_max = 0\n", "rollout.rejections_max"),
        ("[rehearsal]\ntasks = []\n", "rehearsal: list tasks"),
        ("[rehearsal]\ntasks = ['heapsort']\ncoefficient = -1.0\n", "coefficient"),
    ] {
        let message = RlRecipe::from_toml(&format!("{LEAST}{more}")).expect_err(more).to_string();
        assert!(message.contains(part), "{more}: {message}");
    }
}
