//! Instances: of the benchmark, by name, and of a user's own input.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use prime_bench::judge::single::REFERENCE_STEPS_MAX;
use prime_bench::judge::{Body, INDEX_LIMIT, is_correct};
use prime_bench::output::value::equal;
use prime_bench::prompts::{self, Components, Style};
use prime_bench::tasks::inputs::is_in_benchmark;
use prime_bench::tasks::{
    self, AnyTask, BASE_SEED, Difficulty, InstanceId, Machine, Problem, Reference,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::errors::{bad_input, detached, guarded, type_error, unknown_task, value_error};
use crate::values::{self, answer_to_json, difficulty, integer, text, to_json, to_python};

/// An instance and what it is called.
pub struct Named {
    pub task: &'static dyn AnyTask,
    pub problem: Arc<dyn Problem>,
    /// Set for an instance of the benchmark.
    pub id: Option<InstanceId>,
    /// Computed when it is first asked for; `None` if the reference takes too long.
    reference: OnceLock<Option<Reference>>,
}

/// An instance in the form that is pickled.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Saved {
    Named { task: String, difficulty: Difficulty, index: u32, base_seed: u64 },
    Input { task: String, input: Value },
}

/// The task of a name.
pub fn find(name: &Bound<'_, PyAny>) -> PyResult<&'static dyn AnyTask> {
    tasks::find(&text("task", name)?).map_err(|error| unknown_task(&error))
}

impl Named {
    pub fn of(id: InstanceId) -> Self {
        Self { task: id.task, problem: id.problem(), id: Some(id), reference: OnceLock::new() }
    }

    fn of_input(task: &'static dyn AnyTask, problem: Arc<dyn Problem>) -> Self {
        Self { task, problem, id: None, reference: OnceLock::new() }
    }

    pub fn save(&self) -> Saved {
        let task = self.task.spec().slug.to_owned();
        match &self.id {
            Some(id) => Saved::Named {
                task,
                difficulty: id.difficulty,
                index: id.index,
                base_seed: id.base_seed,
            },
            None => Saved::Input { task, input: self.problem.input() },
        }
    }

    pub fn restore(saved: Saved) -> PyResult<Self> {
        let task = |name: &str| tasks::find(name).map_err(|error| unknown_task(&error));
        match saved {
            Saved::Named { task: name, difficulty, index, base_seed } => {
                // Pickles may come from anywhere, so the index is checked as in the constructor.
                if index >= INDEX_LIMIT {
                    return Err(value_error(
                        "index",
                        format!("{index} is not below {INDEX_LIMIT}"),
                    ));
                }

                let id = InstanceId { task: task(&name)?, difficulty, index, base_seed };
                guarded(|| Self::of(id))
            }
            Saved::Input { task: name, input } => {
                let task = task(&name)?;
                let problem = guarded(|| task.read_input(&input))?
                    .map_err(|error| bad_input("input", &error))?;
                Ok(Self::of_input(task, problem))
            }
        }
    }

    /// The name in reports: `bubble-sort/easy/007`, or the task's.
    pub fn name(&self) -> String {
        self.id.map_or_else(|| self.task.spec().slug.to_owned(), |id| id.to_string())
    }

    pub fn difficulty(&self) -> Difficulty {
        self.id.map_or(Difficulty::Easy, |id| id.difficulty)
    }

    /// Refuses a user's input on which the reference would take too long; the benchmark's are known
    /// to be short.
    pub fn check_reference(&self) -> PyResult<()> {
        if self.id.is_none() { self.reference().map(drop) } else { Ok(()) }
    }

    /// The reference's answer and its number of steps.
    pub fn reference(&self) -> PyResult<&Reference> {
        self.reference
            .get_or_init(|| self.run_reference(|machine| machine.follow_reference()))
            .as_ref()
            .ok_or_else(too_long)
    }

    /// The reference's lines.
    fn lines(&self) -> PyResult<Vec<String>> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        let advance = |machine: &mut dyn Machine| {
            let is_step = machine.advance(&mut line);
            lines.extend(is_step.then(|| line.clone()));
            is_step
        };

        self.run_reference(advance).ok_or_else(too_long)?;
        Ok(lines)
    }

    fn run_reference(
        &self,
        mut advance: impl FnMut(&mut dyn Machine) -> bool,
    ) -> Option<Reference> {
        let mut machine = self.problem.start();
        for steps in 0..REFERENCE_STEPS_MAX {
            if !advance(machine.as_mut()) {
                return Some(Reference { answer: machine.answer().unwrap_or(Value::Null), steps });
            }
        }
        None
    }

    /// Whether an answer is right: by the task's goal test, or equal to the reference answer.
    pub fn accepts(&self, answer: &Value) -> PyResult<bool> {
        self.problem.goal(answer).map_or_else(|| Ok(equal(&self.reference()?.answer, answer)), Ok)
    }

    /// Whether the answer of an output is right.
    pub fn is_correct(&self, body: &Body) -> PyResult<bool> {
        // The closure cannot fail, so an error is carried out of it.
        let mut failure = None;

        let right = is_correct(self.problem.as_ref(), body, |answer| {
            self.accepts(answer).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });

        failure.map_or(Ok(right), Err)
    }
}

fn too_long() -> PyErr {
    PyValueError::new_err(format!(
        "input: the reference takes more than {REFERENCE_STEPS_MAX} steps"
    ))
}

/// The identity in the arguments of an instance.
pub fn instance_id(
    task: &Bound<'_, PyAny>,
    difficulty: Option<&Bound<'_, PyAny>>,
    index: Option<&Bound<'_, PyAny>>,
    base_seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<InstanceId> {
    let task = find(task)?;
    let difficulty = difficulty.map_or(Ok(Difficulty::Easy), self::difficulty)?;
    let index =
        index.map_or(Ok(0), |index| integer("index", index, 0, u64::from(INDEX_LIMIT) - 1))?;
    let base_seed =
        base_seed.map_or(Ok(BASE_SEED), |seed| integer("base_seed", seed, 0, u64::MAX))?;
    let index = u32::try_from(index).map_err(|error| value_error("index", error))?;

    Ok(InstanceId { task, difficulty, index, base_seed })
}

/// One instance of a task: immutable, shared, picklable, hashable.
#[pyclass(frozen, module = "prime_bench")]
pub struct Instance(pub Arc<Named>);

impl Instance {
    fn input_text(&self) -> String {
        self.0.problem.input().to_string()
    }

    fn id(&self) -> Option<InstanceId> {
        self.0.id
    }
}

#[pymethods]
impl Instance {
    /// Instance(task, difficulty="easy", index=0, base_seed=42)
    ///
    /// An instance of the benchmark. Raises KeyError for an unknown task, ValueError for other
    /// values out of range.
    #[new]
    #[pyo3(
        signature = (task, difficulty=None, index=None, base_seed=None),
        text_signature = "(task, difficulty='easy', index=0, base_seed=42)"
    )]
    fn new(
        py: Python<'_>,
        task: &Bound<'_, PyAny>,
        difficulty: Option<&Bound<'_, PyAny>>,
        index: Option<&Bound<'_, PyAny>>,
        base_seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let id = instance_id(task, difficulty, index, base_seed)?;
        Ok(Self(Arc::new(detached(py, || Named::of(id))?)))
    }

    /// An instance of your own: the task's `input` as a dict, or as JSON text.
    ///
    /// Raises KeyError for an unknown task, ValueError with the field that is missing, unknown or
    /// out of range.
    #[staticmethod]
    fn from_input(
        py: Python<'_>,
        task: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let task = find(task)?;

        let input = match input.cast::<PyString>() {
            Ok(text) => {
                serde_json::from_str(text.to_str()?).map_err(|error| value_error("input", error))?
            }
            Err(_) => to_json("input", input)?,
        };

        let problem = detached(py, || task.read_input(&input))?
            .map_err(|error| bad_input("input", &error))?;

        Ok(Self(Arc::new(Named::of_input(task, problem))))
    }

    /// Slug of the task.
    #[getter]
    fn task(&self) -> &'static str {
        self.0.task.spec().slug
    }

    /// `bubble-sort/easy/007`; None for an input of your own.
    #[getter(id)]
    fn name(&self) -> Option<String> {
        self.id().map(|id| id.to_string())
    }

    /// easy, medium or hard; None for an input of your own.
    #[getter(difficulty)]
    fn level(&self) -> Option<&'static str> {
        self.id().map(|id| id.difficulty.name())
    }

    /// Number within its level; None for an input of your own.
    #[getter]
    fn index(&self) -> Option<u32> {
        self.id().map(|id| id.index)
    }

    /// Base seed: 42 is the benchmark's own; None for an input of your own.
    #[getter]
    fn base_seed(&self) -> Option<u64> {
        self.id().map(|id| id.base_seed)
    }

    /// Whether the benchmark has this input, at any level of the task and whatever the seed.
    #[getter]
    fn in_benchmark(&self) -> PyResult<bool> {
        guarded(|| is_in_benchmark(self.0.problem.as_ref()))
    }

    /// T_max: no valid trace of an input of this size is longer.
    #[getter]
    fn max_steps(&self) -> u64 {
        self.0.problem.steps_max()
    }

    /// The input as a dict, with the fields that the task hides from executors.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.problem.input())
    }

    /// The input as a dict, as an executor may see it.
    #[getter]
    fn visible_input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &prompts::visible(self.0.task.spec(), self.0.problem.input()))
    }

    /// The reference answer, as a dict. Runs the reference algorithm.
    ///
    /// Raises ValueError where an input of your own takes it more than 2^21 steps.
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reference = detached(py, || self.0.reference())??;
        to_python(py, &reference.answer)
    }

    /// The lines of the reference trace.
    ///
    /// Raises ValueError where an input of your own takes more than 2^21 steps.
    fn reference(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || self.0.lines())?
    }

    /// The number of lines of the reference trace.
    fn reference_steps(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.0.reference())??.steps)
    }

    /// Whether an answer, a dict, is right: by the task's goal test, or equal to the reference
    /// answer.
    fn accepts(&self, py: Python<'_>, answer: &Bound<'_, PyAny>) -> PyResult<bool> {
        let answer = answer_to_json("answer", answer)?;
        detached(py, || self.0.accepts(&answer))?
    }

    /// prompt(style="structured", without=())
    ///
    /// The prompt for the whole problem: `baseline`, `structured` (without some of constraints,
    /// verification, examples, format), `sorting`, `state-machine` or `mathematical`, whose output
    /// `judge` reads; or `turns`, which asks for one action a turn, as environments take them.
    #[pyo3(
        signature = (style="structured", without=Vec::new()),
        text_signature = "($self, style='structured', without=())"
    )]
    fn prompt(&self, style: &str, without: Vec<String>) -> PyResult<String> {
        let mut style = values::style(style, self.0.task.spec())?;

        if !without.is_empty() {
            if !matches!(style, Style::Structured(_)) {
                return Err(value_error("without", "goes with the structured prompt"));
            }
            let components =
                without.iter().try_fold(Components::ALL, |all, name| all.without(name));
            style = Style::Structured(components.map_err(|error| value_error("without", error))?);
        }

        guarded(|| prompts::whole(self.0.problem.as_ref(), style))
    }

    fn __repr__(&self) -> String {
        match self.id() {
            Some(id) if id.base_seed == BASE_SEED => format!("<Instance {id}>"),
            Some(id) => format!("<Instance {id} of base seed {}>", id.base_seed),
            None => format!("<Instance of {}, own input>", self.task()),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        let other = other.get();
        self.task() == other.task() && self.input_text() == other.input_text()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.task(), self.input_text()).hash(&mut hasher);
        hasher.finish()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let saved = serde_json::to_string(&self.0.save())
            .map_err(|error| value_error("instance", error))?;
        Ok((py.import("prime_bench._native")?.getattr("_restore_instance")?, (saved,)))
    }
}

/// Reads what `Instance.__reduce__` wrote.
#[pyfunction(name = "_restore_instance")]
pub fn restore_instance(saved: &str) -> PyResult<Instance> {
    let saved: Saved =
        serde_json::from_str(saved).map_err(|error| value_error("instance", error))?;
    Named::restore(saved).map(|named| Instance(Arc::new(named)))
}

/// The instance in an argument.
pub fn instance(field: &str, object: &Bound<'_, PyAny>) -> PyResult<Arc<Named>> {
    let found = object.cast::<Instance>().map_err(|_| type_error(field, "an Instance", object))?;
    Ok(Arc::clone(&found.get().0))
}
