//! A step environment in Gymnasium's form.

use std::str;

use prime_bench::tasks::{Kind, Kinds, Refusal};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::episode::{Episode, Outcome, Rules, SavedEpisode, Status};
use crate::errors::{EpisodeOver, detached, guarded, type_error, value_error};
use crate::instance::{Instance, instance};
use crate::values::{self, parts, to_python};

/// The rules in the keyword arguments of both environments.
pub fn rules(
    steps_max: u64,
    kinds: Option<&Bound<'_, PyAny>>,
    weights: Option<&Bound<'_, PyAny>>,
    max_steps: Option<&Bound<'_, PyAny>>,
    reject_violations: bool,
) -> PyResult<Rules> {
    let kinds = values::kinds(kinds, Kinds::WITHOUT_TRANSITION)?;
    let weights = values::weights(weights)?;

    let steps_max = match max_steps.filter(|given| !given.is_none()) {
        Some(given) => values::integer("max_steps", given, 1, u64::MAX)?,
        None => steps_max,
    };

    Ok(Rules::new(kinds, weights, steps_max.max(1), reject_violations))
}

/// The state as JSON text, which is UTF-8.
pub fn observation(episode: &Episode) -> &str {
    str::from_utf8(&episode.observation).unwrap_or_default()
}

/// `unparsable` or `illegal`.
pub fn refusal_kind(refusal: &Refusal) -> &'static str {
    if *refusal == Refusal::Unparsable { "unparsable" } else { "illegal" }
}

fn info<'py>(
    py: Python<'py>,
    episode: &Episode,
    outcome: &Outcome<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    info.set_item(pyo3::intern!(py, "score"), outcome.score.value())?;

    let broken =
        outcome.violations.iter(episode.machine().spec()).map(|constraint| constraint.name);
    info.set_item(pyo3::intern!(py, "violations"), PyList::new(py, broken.collect::<Vec<_>>())?)?;

    info.set_item(pyo3::intern!(py, "refusal"), outcome.refusal.as_ref().map(refusal_kind))?;
    info.set_item(pyo3::intern!(py, "reason"), outcome.refusal.as_ref().map(ToString::to_string))?;
    info.set_item(pyo3::intern!(py, "steps"), episode.rewards.merits().steps)?;

    if episode.status == Status::Terminated {
        let answer = episode.machine().answer().unwrap_or_default();
        info.set_item(pyo3::intern!(py, "answer"), to_python(py, &answer)?)?;
    }

    Ok(info)
}

type StepResult<'py> = (Bound<'py, PyString>, f64, bool, bool, Bound<'py, PyDict>);

/// An instance as an environment: each line is judged, and rewarded.
///
/// StepEnv(instance, *, kinds=("format", "invariant", "terminal"), weights=(10, 1, 0.5, 0.1),
/// max_steps=None, reject_violations=False)
///
/// `kinds` are the kinds of constraints that count; `transition` compares with the algorithm's own
/// next step. `weights` are those of the composite reward. An episode is truncated after
/// `max_steps` lines, by default the instance's. With `reject_violations` a line that breaks a
/// constraint leaves the state as it is, so the agent tries again.
#[pyclass(module = "prime_bench")]
pub struct StepEnv {
    episode: Episode,
}

impl StepEnv {
    fn saved(&self) -> PyResult<String> {
        serde_json::to_string(&self.episode.save()).map_err(|error| value_error("episode", error))
    }
}

#[pymethods]
impl StepEnv {
    #[new]
    #[pyo3(signature = (instance, *, kinds=None, weights=None, max_steps=None, reject_violations=false))]
    fn new(
        instance: &Bound<'_, PyAny>,
        kinds: Option<&Bound<'_, PyAny>>,
        weights: Option<&Bound<'_, PyAny>>,
        max_steps: Option<&Bound<'_, PyAny>>,
        reject_violations: bool,
    ) -> PyResult<Self> {
        let named = self::instance("instance", instance)?;
        let rules = rules(named.problem.steps_max(), kinds, weights, max_steps, reject_violations)?;
        Ok(Self { episode: guarded(|| Episode::new(named, rules))? })
    }

    /// reset(*, seed=None, options=None) -> (observation, info)
    ///
    /// Starts the episode again, at any time. An instance has no randomness: `seed` changes
    /// nothing. `options={"instance": …}` switches to another instance.
    #[pyo3(signature = (*, seed=None, options=None))]
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyDict>)> {
        let _ = seed;
        let mut next = None;

        if let Some(options) = options.filter(|options| !options.is_none()) {
            let options =
                options.cast::<PyDict>().map_err(|_| type_error("options", "a dict", options))?;
            for (key, value) in options.iter() {
                if values::text("options", &key)? != "instance" {
                    return Err(value_error(
                        "options",
                        format!("unknown key {key}: there is `instance`"),
                    ));
                }
                next = Some(instance("options[\"instance\"]", &value)?);
            }
        }

        match next {
            Some(named) => {
                let rules = self.episode.rules_for(&named);
                self.episode = guarded(|| Episode::new(named, rules))?;
            }
            None => guarded(|| self.episode.reset())?,
        }

        let info = PyDict::new(py);
        info.set_item("task", self.episode.named.task.spec().slug)?;
        info.set_item("instance", self.episode.named.id.map(|id| id.to_string()))?;
        Ok((PyString::new(py, observation(&self.episode)), info))
    }

    /// step(line) -> (observation, reward, terminated, truncated, info)
    ///
    /// `line` is one action, as the task's grammar has it; what models put around one (white space,
    /// bold, numbers) is taken off, as in traces. A line that is none, or cannot be
    /// applied, leaves the state as it is. `info` has `score` (V of the line, 0 if it breaks
    /// nothing), `violations` (names), `refusal` (None, unparsable or illegal), `reason`, `steps`
    /// (lines applied so far), and at the end of the trace `answer`.
    ///
    /// Raises EpisodeOver, a RuntimeError, after the end.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        line: &Bound<'py, PyAny>,
    ) -> PyResult<StepResult<'py>> {
        let text = line.cast::<PyString>().map_err(|_| type_error("line", "a str", line))?;
        let text = values::model_text(text);

        if self.episode.status != Status::Running {
            return Err(EpisodeOver::new_err("the episode has ended: call reset()"));
        }

        let episode = &mut self.episode;
        let stepped = guarded(|| episode.step(&text));
        // A panic may have left the state half applied, so the episode ends.
        let outcome = stepped.inspect_err(|_| episode.status = Status::Truncated)?;

        let (terminated, truncated) =
            (episode.status == Status::Terminated, episode.status == Status::Truncated);

        let info = info(py, episode, &outcome)?;
        Ok((
            PyString::new(py, observation(episode)),
            outcome.reward.total,
            terminated,
            truncated,
            info,
        ))
    }

    /// The instance.
    #[getter]
    fn instance(&self) -> Instance {
        Instance(self.episode.named.clone())
    }

    /// The state as JSON text: the last observation.
    #[getter(observation)]
    fn last_observation(&self) -> &str {
        observation(&self.episode)
    }

    /// The lines that made the state.
    #[getter]
    fn lines(&self) -> Vec<String> {
        self.episode.committed.iter().map(str::to_owned).collect()
    }

    /// Whether the episode has ended.
    #[getter]
    fn done(&self) -> bool {
        self.episode.status != Status::Running
    }

    /// Lines after which an episode is truncated.
    #[getter]
    fn max_steps(&self) -> u64 {
        self.episode.rules.steps_max
    }

    /// Names of the kinds of constraints that count.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        self.episode.rules.kinds().iter().map(Kind::name).collect()
    }

    /// The answer, if the trace has ended.
    #[getter]
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let answer = guarded(|| self.episode.machine().answer())?;
        answer.map(|answer| to_python(py, &answer)).transpose()
    }

    /// Whether the trace has ended with the right answer. Compares with the reference answer where
    /// the task has no goal test: more than the reward's r_task does, which asks the verifier
    /// alone.
    fn correct(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || {
            let Some(answer) = self.episode.machine().answer() else { return Ok(false) };
            self.episode.named.accepts(&answer)
        })?
    }

    /// The algorithm's next line; None at the end, and where it prescribes none.
    fn reference(&self) -> PyResult<Option<String>> {
        guarded(|| self.episode.machine().reference())
    }

    /// The lines that an agent may choose from here, where the task lists them; None where it does
    /// not.
    fn choices(&self) -> PyResult<Option<Vec<String>>> {
        guarded(|| self.episode.machine().choices())
    }

    /// R of the lines so far, as a Reward.
    fn trajectory_reward<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = py.import("prime_bench._rewards")?.getattr("Reward")?;
        class.call1(parts(&self.episode.rewards.trajectory()))
    }

    /// A copy of the environment in its present state, for search.
    fn fork(&self) -> PyResult<Self> {
        Ok(Self { episode: guarded(|| self.episode.fork())? })
    }

    fn __copy__(&self) -> PyResult<Self> {
        self.fork()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.fork()
    }

    /// The state as JSON text.
    fn render(&self) -> &str {
        observation(&self.episode)
    }

    /// Nothing is held that would have to be closed.
    #[expect(clippy::unused_self, reason = "Gymnasium's interface")]
    fn close(&self) {}

    fn __repr__(&self) -> String {
        let merits = self.episode.rewards.merits();
        format!(
            "<StepEnv {}, {} lines, {:?}>",
            self.episode.named.name(),
            merits.proposals,
            self.episode.status
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("prime_bench._native")?.getattr("_restore_env")?, (self.saved()?,)))
    }
}

/// Reads what `StepEnv.__reduce__` wrote.
#[pyfunction(name = "_restore_env")]
pub fn restore_env(saved: &str) -> PyResult<StepEnv> {
    let saved: SavedEpisode =
        serde_json::from_str(saved).map_err(|error| value_error("episode", error))?;
    let episode = guarded(|| Episode::restore(saved))?;
    episode.map(|episode| StepEnv { episode })
}
