//! Which tasks the configured executor has learnt, if its models say so. Loads nothing.

use prime_bench::tasks::{self, Spec};
use prime_settings::{ExecutorAgent, Settings};

/// None of the executor's models was trained on this task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the executor's models have not learnt `{task}`; they know {}. Configure an executor that can read the task, such as a \
     larger model (docs/agents.md)",
    known.join(", ")
)]
pub struct NotLearnt {
    pub task: &'static str,
    pub known: Vec<&'static str>,
}

/// Checks that somebody in the configured executor may know the task: a model that was trained on
/// it or whose tasks are not known, a program, the algorithm itself.
///
/// # Errors
/// The executor consists of models that were trained on other tasks alone.
pub fn check_learnt(settings: &Settings, task: &Spec) -> Result<(), NotLearnt> {
    if may_know(settings, task) {
        return Ok(());
    }

    let known = tasks::all().map(|task| task.spec()).filter(|other| may_know(settings, other));
    Err(NotLearnt { task: task.slug, known: known.map(|task| task.slug).collect() })
}

fn may_know(settings: &Settings, task: &Spec) -> bool {
    let mut may_know = false;
    settings.walk_configured::<ExecutorAgent>(&mut |_, agent| {
        let engines = agent.engines();

        let has_learnt = |name: &String| {
            settings.engines.get(name).and_then(|engine| engine.has_learnt(task.slug))
        };
        may_know |= if engines.is_empty() {
            // An escalation knows what its parts know.
            agent.members().is_empty()
        } else {
            // A model whose tasks are not known may know this one.
            engines.iter().any(|name| has_learnt(name) != Some(false))
        };
    });
    may_know
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        executor: &str,
        task: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Result<(), NotLearnt> {
        let mut settings = Settings::default();
        executor.clone_into(&mut settings.agents.executor.implementation);
        change(&mut settings);
        check_learnt(&settings, tasks::find(task).expect("a task").spec())
    }

    fn tiny_alone(settings: &mut Settings) {
        settings.agents.executor.engine = "tiny".into();
    }

    #[test]
    fn the_built_in_models_know_all_tasks() {
        let unknown: Vec<_> = tasks::all()
            .map(|task| task.spec().slug)
            .filter(|task| check("llama", task, |_| ()).is_err())
            .collect();
        assert!(unknown.is_empty(), "README.md says so: {unknown:?}");
    }

    #[test]
    fn only_models_whose_tasks_are_known_are_refused_others() {
        assert_eq!(check("llama", "n-queens", |_| ()), Ok(()));
        assert_eq!(check("llama", "turing-machine", |_| ()), Ok(()), "the second engine knows it");

        let error = check("llama", "turing-machine", tiny_alone).unwrap_err();
        assert!(error.to_string().contains("`turing-machine`; they know "), "{error}");
        assert_eq!(
            error.known,
            ["bubble-sort", "tower-of-hanoi", "n-queens", "dfa-simulation", "long-division"]
        );

        let other_model = |settings: &mut Settings| {
            tiny_alone(settings);
            settings.engines.get_mut("tiny").unwrap().model = "other.gguf".into();
        };

        assert_eq!(check("llama", "turing-machine", other_model), Ok(()));
        assert_eq!(check("reference", "turing-machine", tiny_alone), Ok(()));
    }

    #[test]
    fn an_entry_may_state_what_its_model_has_learnt() {
        let stated = |entry: &'static str| {
            move |settings: &mut Settings| {
                tiny_alone(settings);
                let engine = settings.engines.get_mut("tiny").unwrap();
                engine.model = "other.gguf".into();
                engine.tasks = vec![entry.to_owned()];
            }
        };

        assert_eq!(check("llama", "unification", stated("unification")), Ok(()));
        assert_eq!(check("llama", "unification", stated("logic")), Ok(()));
        assert!(check("llama", "unification", stated("graph-traversal")).is_err());
    }

    #[test]
    fn an_escalation_may_know_more_than_its_small_model() {
        assert!(
            check("escalation", "turing-machine", tiny_alone).is_err(),
            "both parts are built-in models"
        );

        let large = |settings: &mut Settings| {
            tiny_alone(settings);
            "reference".clone_into(&mut settings.agents.executor.escalation.large);
        };
        assert_eq!(check("escalation", "turing-machine", large), Ok(()));
    }
}
