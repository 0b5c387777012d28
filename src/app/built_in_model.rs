//! Which tasks the configured executor has learnt, if it is the built-in model. Loads nothing.

use crate::settings::{ExecutorAgent, ModelSource, RoleOptions as _, Settings};
use crate::shipped_model;

/// The executor is the built-in model, which was not trained on this task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the built-in model has not learnt `{task}`; it knows {}. Configure an executor that can read the task, such as a larger \
     model (docs/agents.md)",
    shown(known)
)]
pub struct NotLearnt {
    pub task: String,
    pub known: Vec<String>,
}

/// Names shown in the message.
const SHOWN: usize = 10;

fn shown(known: &[String]) -> String {
    match known.len().checked_sub(SHOWN) {
        None | Some(0) => known.join(", "),
        Some(more) => format!("{} and {more} more", known[..SHOWN].join(", ")),
    }
}

/// Checks that somebody in the configured executor may know the task: a larger model, a program, the algorithm itself or the
/// built-in model if it was trained on it.
///
/// # Errors
/// The executor consists of the built-in model alone, and that does not know the task.
pub fn check_learnt(settings: &Settings, task: &str) -> Result<(), NotLearnt> {
    let mut is_built_in_alone = true;
    settings.walk_configured::<ExecutorAgent>(&mut |_, options| {
        let engine = options.engine().and_then(|name| settings.engines.get(name));
        let is_built_in = engine.is_some_and(|engine| engine.find_model(None) == Ok(ModelSource::BuiltIn));
        // An escalation is what its parts are.
        is_built_in_alone &= is_built_in || !options.members().is_empty();
    });
    let known = shipped_model::tasks();
    if is_built_in_alone && !known.iter().any(|slug| slug == task) {
        return Err(NotLearnt { task: task.to_owned(), known });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(executor: &str, task: &str, change: impl FnOnce(&mut Settings)) -> Result<(), NotLearnt> {
        let mut settings = Settings::default();
        executor.clone_into(&mut settings.agents.executor.implementation);
        change(&mut settings);
        check_learnt(&settings, task)
    }

    #[test]
    fn only_the_built_in_model_is_refused_what_it_has_not_learnt() {
        assert_eq!(check("llama", "n-queens", |_| ()), Ok(()));
        let error = check("llama", "sudoku", |_| ()).unwrap_err();
        assert!(error.to_string().contains("`sudoku`; it knows "), "{error}");
        assert!(error.known.iter().any(|slug| slug == "tower-of-hanoi"), "{error}");
        let other_model = |settings: &mut Settings| {
            settings.engines.get_mut("tiny").unwrap().model = "other.gguf".into();
        };
        assert_eq!(check("llama", "sudoku", other_model), Ok(()));
        assert_eq!(check("reference", "sudoku", |_| ()), Ok(()));
    }

    #[test]
    fn an_escalation_may_know_more_than_its_small_model() {
        assert!(check("escalation", "sudoku", |_| ()).is_err(), "both parts are the built-in model");
        let large = |settings: &mut Settings| {
            "reference".clone_into(&mut settings.agents.executor.escalation.large);
        };
        assert_eq!(check("escalation", "sudoku", large), Ok(()));
    }
}
