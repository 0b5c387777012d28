//! Which tasks the configured executor has learnt, if its models say so, and up to which size.
//! Loads nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem, Spec};
use prime_models::BuiltInModel;
use prime_settings::{ExecutorAgent, Settings, first_that_knows};

/// The error that none of the executor's models was trained on the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the executor's models have not learnt `{task}`; they know {}. Configure an executor that can read the task, such as a \
     larger model (docs/agents.md)",
    known.join(", ")
)]
pub struct NotLearnt {
    /// Slug of the task.
    pub task: &'static str,
    /// Slugs of the tasks that the models know, in the benchmark's order.
    pub known: Vec<&'static str>,
}

/// Checks that some part of the configured executor may know the task: a model that was trained on
/// it or whose tasks are not known, a program, or the algorithm itself.
///
/// # Errors
/// The executor consists only of models that were trained on other tasks.
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

/// A part of an input that is larger than in any instance that the model has learnt from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondLearnt {
    /// Name of the built-in model.
    pub model: &'static str,
    /// What is too large, such as "the length of `a`".
    pub what: String,
    /// The size in the input.
    pub size: u64,
    /// The largest that the model has learnt.
    pub most: u64,
}

impl fmt::Display for BeyondLearnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, what, size, most } = self;
        write!(
            f,
            "{what} is {size}, more than the model {model} has learnt ({most}): the run may get \
             stuck"
        )
    }
}

/// Number of instances of each level from which the sizes of a task are taken. All levels are
/// learnt, and the last one has the largest sizes.
const SAMPLED: [u32; 3] = [20, 20, 200];

/// The sizes of an input, by what they measure.
type Sizes = BTreeMap<String, u64>;

/// The first part of an input that is larger than what the built-in model that is asked about its
/// task has learnt. Also `None` if another executor or a model of the user proposes, since its
/// abilities are unknown. May compute for milliseconds.
pub fn beyond_learnt(settings: &Settings, problem: &dyn Problem) -> Option<BeyondLearnt> {
    let spec = problem.spec();
    let model = asked(settings, spec.slug)?;

    let known = largest(spec.slug)?;
    let own = sizes(&problem.input(), spec);
    let larger =
        own.into_iter().find(|(what, size)| known.get(what).is_some_and(|most| size > most));
    larger.map(|(what, size)| BeyondLearnt { model, most: known[&what], what, size })
}

/// The built-in model that alone proposes steps of a task.
fn asked(settings: &Settings, task: &str) -> Option<&'static str> {
    let (mut models, mut is_other) = (Vec::new(), false);
    settings.walk_configured::<ExecutorAgent>(&mut |_, agent| {
        let engines = agent.engines();
        let has_learnt = |name: &String| settings.engines.get(name)?.has_learnt(task);
        match first_that_knows(engines, has_learnt).and_then(|name| settings.engines.get(name)) {
            Some(engine) => models.push(BuiltInModel::find(&engine.model)),
            None => is_other |= agent.members().is_empty(),
        }
    });
    let [Some(model)] = models.as_slice() else { return None };
    (!is_other).then_some(model.name)
}

/// The largest sizes of the instances of a task.
fn largest(task: &str) -> Option<Sizes> {
    static KNOWN: Mutex<BTreeMap<String, Sizes>> = Mutex::new(BTreeMap::new());

    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sizes) = known.get(task) {
        return Some(sizes.clone());
    }

    let found = tasks::find(task).ok()?;
    let mut most = Sizes::new();
    for (difficulty, count) in Difficulty::ALL.into_iter().zip(SAMPLED) {
        for index in 0..count {
            let id = InstanceId::new(found, difficulty, index, BASE_SEED).ok()?;
            for (what, size) in sizes(&id.problem().input(), found.spec()) {
                let entry = most.entry(what).or_default();
                *entry = size.max(*entry);
            }
        }
    }
    known.insert(task.to_owned(), most.clone());
    Some(most)
}

/// The lengths of an input's lists and texts, and the numbers by which its page names sizes.
fn sizes(input: &Value, spec: &Spec) -> Sizes {
    let mut sizes = Sizes::new();
    for (name, value) in input.as_object().into_iter().flatten() {
        // Such as `n = 15 to 20` of the page.
        let is_size = spec.sizes[2].split(", ").any(|size| size.starts_with(&format!("{name} = ")));
        match value {
            Value::Number(number) if is_size => {
                sizes.extend(number.as_u64().map(|number| (format!("`{name}`"), number)));
            }
            Value::String(text) => {
                sizes.insert(format!("the length of `{name}`"), text.chars().count() as u64);
            }
            Value::Array(entries) => {
                sizes.insert(format!("the length of `{name}`"), entries.len() as u64);
            }
            _ => {}
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    fn beyond(task: &str, input: &Value) -> Option<(String, u64, u64)> {
        let problem = tasks::find(task).expect("a task").read_input(input).expect("an input");
        let found = beyond_learnt(&Settings::default(), problem.as_ref());
        found.map(|found| (found.what, found.size, found.most))
    }

    #[test]
    fn an_input_larger_than_all_that_was_learnt_is_known_before_the_run() {
        // The pages: bubble-sort has up to 25 numbers, n-queens sides up to 12, the tower 20 discs.
        let numbers = |count: i64| json!({"a": (0..count).rev().collect::<Vec<_>>()});
        assert_eq!(beyond("bubble-sort", &numbers(25)), None);
        let found = ("the length of `a`".to_owned(), 26, 25);
        assert_eq!(beyond("bubble-sort", &numbers(26)), Some(found));

        let board = |n: u32| json!({"n": n, "order": (0..n).collect::<Vec<_>>()});
        assert_eq!(beyond("n-queens", &board(12)), None);
        assert_eq!(beyond("n-queens", &board(13)), Some(("`n`".to_owned(), 13, 12)));

        let tower = |n: u32| json!({"n": n, "from": 0, "to": 2});
        assert_eq!(beyond("tower-of-hanoi", &tower(20)), None);
        assert_eq!(beyond("tower-of-hanoi", &tower(21)), Some(("`n`".to_owned(), 21, 20)));
    }

    #[test]
    fn nobody_knows_what_other_executors_can_do() {
        let numbers = json!({"a": (0..30).rev().collect::<Vec<_>>()});
        let problem = tasks::find("bubble-sort").unwrap().read_input(&numbers).unwrap();
        let with = |executor: &str, change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            executor.clone_into(&mut settings.agents.executor.implementation);
            change(&mut settings);
            beyond_learnt(&settings, problem.as_ref())
        };

        assert!(with("llama", |_| ()).is_some());
        assert_eq!(with("scripted", |_| ()), None);
        let own = |settings: &mut Settings| {
            settings.engines.get_mut("tiny").unwrap().model = "other.gguf".into();
            settings.agents.executor.engine = "tiny".into();
        };
        assert_eq!(with("llama", own), None, "a model of the user's");
    }
}
