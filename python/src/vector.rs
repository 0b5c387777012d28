//! Many environments as one: a call steps all of them on several threads, without the interpreter's
//! lock.

use std::sync::Arc;
use std::thread;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyString};

use crate::env::{observation, refusal_kind, rules};
use crate::episode::{Episode, Outcome, SavedEpisode, Status};
use crate::errors::{EpisodeOver, detached, guarded, type_error, value_error};
use crate::instance::{Instance, Named, instance};
use crate::parallel;
use crate::values::{self, integer};

/// Fewest episodes that are worth a thread of their own.
const PER_THREAD: usize = 256;

/// A line, or None for an episode that is left alone.
type Line = Option<PyBackedStr>;

fn step_some<'l>(episodes: &mut [Episode], lines: &'l [Line]) -> Vec<Option<Outcome<'l>>> {
    let pairs = episodes.iter_mut().zip(lines);
    pairs.map(|(episode, line)| line.as_deref().map(|line| episode.step(line))).collect()
}

/// Steps all episodes on up to `threads` threads. `None` if the code of a task has panicked.
fn step_all<'l>(
    episodes: &mut [Episode],
    lines: &'l [Line],
    threads: usize,
) -> Option<Vec<Option<Outcome<'l>>>> {
    let threads = threads.min(episodes.len() / PER_THREAD).max(1);
    if threads == 1 {
        return guarded(|| step_some(episodes, lines)).ok();
    }

    let share = episodes.len().div_ceil(threads);
    thread::scope(|scope| {
        let shares = episodes.chunks_mut(share).zip(lines.chunks(share));
        let workers: Vec<_> =
            shares.map(|(episodes, lines)| scope.spawn(|| step_some(episodes, lines))).collect();

        // All are joined, so that a panic does not leave the scope.
        let results: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let shares: Result<Vec<_>, _> = results.into_iter().collect();
        Some(shares.ok()?.into_iter().flatten().collect())
    })
}

type Columns<'py> = (Bound<'py, PyList>, Vec<f64>, Vec<bool>, Vec<bool>, Bound<'py, PyDict>);

/// Many instances as environments that are stepped together.
///
/// VectorStepEnv(instances, *, threads=0, kinds=…, weights=…, max_steps=None,
/// reject_violations=False)
///
/// `threads=0` takes the machine's cores. Threads live during a call only, so the process may fork.
/// Environments are not reset by themselves: `reset_at(index)` when one has ended.
#[pyclass(module = "prime_bench")]
pub struct VectorStepEnv {
    episodes: Vec<Episode>,
    threads: usize,
}

impl VectorStepEnv {
    fn observations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.episodes.iter().map(observation))
    }

    fn lines(&self, lines: &Bound<'_, PyAny>) -> PyResult<Vec<Line>> {
        if lines.is_instance_of::<PyString>() {
            return Err(type_error("lines", "a sequence of str or None", lines));
        }

        let given = lines
            .try_iter()
            .map_err(|_| type_error("lines", "a sequence of str or None", lines))?;

        let mut found = Vec::with_capacity(self.episodes.len());
        for (place, line) in given.enumerate() {
            let line = line?;
            let line = if line.is_none() {
                None
            } else {
                let name = || format!("lines[{place}]");
                let text = line
                    .cast::<PyString>()
                    .map_err(|_| type_error(&name(), "a str or None", &line))?;
                if self.episodes.get(place).is_some_and(|episode| episode.status != Status::Running)
                {
                    let message = "the episode has ended: give None, or call reset_at";
                    return Err(EpisodeOver::new_err(format!("{}: {message}", name())));
                }
                // Lone surrogates are no UTF-8: the text is copied without them.
                let backed = PyBackedStr::try_from(text.clone()).or_else(|_| {
                    PyBackedStr::try_from(PyString::new(text.py(), &values::model_text(text)))
                });
                Some(backed?)
            };

            found.push(line);
        }

        if found.len() != self.episodes.len() {
            let message =
                format!("there are {} for {} environments", found.len(), self.episodes.len());
            return Err(value_error("lines", message));
        }

        Ok(found)
    }

    /// The instances that `options` of a reset name, one for each environment.
    fn other_instances(
        &self,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Vec<Arc<Named>>>> {
        let Some(options) = options.filter(|options| !options.is_none()) else { return Ok(None) };
        let options =
            options.cast::<PyDict>().map_err(|_| type_error("options", "a dict", options))?;

        let mut found = None;

        for (key, value) in options.iter() {
            if values::text("options", &key)? != "instances" {
                return Err(value_error(
                    "options",
                    format!("unknown key {key}: there is `instances`"),
                ));
            }

            let field = "options[\"instances\"]";
            let given = value
                .try_iter()
                .map_err(|_| type_error(field, "a sequence of Instance", &value))?;
            let named =
                given.enumerate().map(|(place, one)| instance(&format!("{field}[{place}]"), &one?));
            let named = named.collect::<PyResult<Vec<_>>>()?;

            if named.len() != self.episodes.len() {
                let message =
                    format!("there are {} for {} environments", named.len(), self.episodes.len());
                return Err(value_error(field, message));
            }

            found = Some(named);
        }

        Ok(found)
    }

    fn place(&self, index: &Bound<'_, PyAny>) -> PyResult<usize> {
        let last = self
            .episodes
            .len()
            .checked_sub(1)
            .ok_or_else(|| value_error("index", "there are no environments"))?;
        let place = integer("index", index, 0, last as u64)?;
        usize::try_from(place).map_err(|error| value_error("index", error))
    }
}

#[pymethods]
impl VectorStepEnv {
    #[new]
    #[pyo3(
        signature = (instances, *, threads=None, kinds=None, weights=None, max_steps=None, reject_violations=false),
        text_signature = "(instances, *, threads=0, kinds=None, weights=None, max_steps=None, reject_violations=False)"
    )]
    fn new(
        py: Python<'_>,
        instances: &Bound<'_, PyAny>,
        threads: Option<&Bound<'_, PyAny>>,
        kinds: Option<&Bound<'_, PyAny>>,
        weights: Option<&Bound<'_, PyAny>>,
        max_steps: Option<&Bound<'_, PyAny>>,
        reject_violations: bool,
    ) -> PyResult<Self> {
        let threads = parallel::threads(threads)?;
        let given = instances
            .try_iter()
            .map_err(|_| type_error("instances", "a sequence of Instance", instances))?;

        let mut chosen = Vec::new();
        for (place, given) in given.enumerate() {
            let named = instance(&format!("instances[{place}]"), &given?)?;
            let rules =
                rules(named.problem.steps_max(), kinds, weights, max_steps, reject_violations)?;
            chosen.push((named, rules));
        }

        let make = || chosen.into_iter().map(|(named, rules)| Episode::new(named, rules)).collect();
        let episodes = detached(py, make)?;
        Ok(Self { episodes, threads })
    }

    /// The number of environments.
    #[getter]
    fn num_envs(&self) -> usize {
        self.episodes.len()
    }

    fn __len__(&self) -> usize {
        self.episodes.len()
    }

    /// reset(*, seed=None, options=None) -> (observations, infos)
    ///
    /// Starts all episodes again. An instance has no randomness: `seed` changes nothing.
    /// `options={"instances": [...]}` switches to other instances, one for each environment.
    #[pyo3(signature = (*, seed=None, options=None))]
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let _ = seed;

        if let Some(named) = self.other_instances(options)? {
            let pairs = self
                .episodes
                .iter()
                .zip(named)
                .map(|(episode, named)| (episode.rules_for(&named), named));
            let pairs: Vec<_> = pairs.collect();
            let make =
                || pairs.into_iter().map(|(rules, named)| Episode::new(named, rules)).collect();
            self.episodes = detached(py, make)?;
        } else {
            let episodes = &mut self.episodes;
            detached(py, || episodes.iter_mut().for_each(Episode::reset))?;
        }

        Ok((self.observations(py)?, PyDict::new(py)))
    }

    /// reset_at(index, instance=None) -> observation
    ///
    /// Starts one episode again, of another instance if one is given.
    #[pyo3(signature = (index, instance=None))]
    fn reset_at(
        &mut self,
        index: &Bound<'_, PyAny>,
        instance: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let place = self.place(index)?;
        let episode = &mut self.episodes[place];
        match instance.filter(|given| !given.is_none()) {
            Some(given) => {
                let named = self::instance("instance", given)?;
                let rules = episode.rules_for(&named);
                *episode = guarded(|| Episode::new(named, rules))?;
            }
            None => guarded(|| episode.reset())?,
        }
        Ok(observation(episode).to_owned())
    }

    /// step(lines) -> (observations, rewards, terminateds, truncateds, infos)
    ///
    /// One line for each environment; None leaves one alone, with reward 0. The results are lists,
    /// in order. `infos` has `score` and `refusal` as lists. Either all lines are taken or, with an
    /// exception, none.
    ///
    /// Raises EpisodeOver, a RuntimeError, for a line to an episode that has ended.
    fn step<'py>(&mut self, py: Python<'py>, lines: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
        let lines = self.lines(lines)?;

        let (episodes, threads) = (&mut self.episodes, self.threads);
        let outcomes = py.detach(|| step_all(episodes, &lines, threads)).ok_or_else(|| {
            // A panic may have left any state half applied, so all episodes end.
            self.episodes.iter_mut().for_each(|episode| episode.status = Status::Truncated);
            PyRuntimeError::new_err(
                "a task could not carry out its line; that is a fault of the task: call reset()",
            )
        })?;

        let infos = PyDict::new(py);
        let score = |outcome: &Option<Outcome<'_>>| {
            outcome.as_ref().map_or(0.0, |outcome| outcome.score.value())
        };
        let refusal =
            |outcome: &Option<Outcome<'_>>| outcome.as_ref()?.refusal.as_ref().map(refusal_kind);
        infos
            .set_item(pyo3::intern!(py, "score"), outcomes.iter().map(score).collect::<Vec<_>>())?;
        infos.set_item(
            pyo3::intern!(py, "refusal"),
            outcomes.iter().map(refusal).collect::<Vec<_>>(),
        )?;

        let reward = |outcome: &Option<Outcome<'_>>| {
            outcome.as_ref().map_or(0.0, |outcome| outcome.reward.total)
        };
        let is = |status| -> Vec<bool> {
            self.episodes.iter().map(|episode| episode.status == status).collect()
        };

        Ok((
            self.observations(py)?,
            outcomes.iter().map(reward).collect(),
            is(Status::Terminated),
            is(Status::Truncated),
            infos,
        ))
    }

    /// The instances, in order.
    #[getter]
    fn instances(&self) -> Vec<Instance> {
        self.episodes.iter().map(|episode| Instance(episode.named.clone())).collect()
    }

    /// The algorithm's next line for each environment; None at its end.
    fn reference(&self, py: Python<'_>) -> PyResult<Vec<Option<String>>> {
        let next = |episode: &Episode| {
            if episode.status == Status::Running { episode.machine().reference() } else { None }
        };
        detached(py, || self.episodes.iter().map(next).collect())
    }

    /// Nothing is held that would have to be closed.
    #[expect(clippy::unused_self, reason = "Gymnasium's interface")]
    fn close(&self) {}

    fn __repr__(&self) -> String {
        format!("<VectorStepEnv of {}>", self.episodes.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, usize))> {
        let saved: Vec<SavedEpisode> = self.episodes.iter().map(Episode::save).collect();
        let saved =
            serde_json::to_string(&saved).map_err(|error| value_error("episodes", error))?;

        Ok((
            py.import("prime_bench._native")?.getattr("_restore_vector_env")?,
            (saved, self.threads),
        ))
    }
}

/// Reads what `VectorStepEnv.__reduce__` wrote.
#[pyfunction(name = "_restore_vector_env")]
pub fn restore_vector_env(saved: &str, threads: usize) -> PyResult<VectorStepEnv> {
    let saved: Vec<SavedEpisode> =
        serde_json::from_str(saved).map_err(|error| value_error("episodes", error))?;
    let episodes =
        guarded(|| saved.into_iter().map(Episode::restore).collect::<PyResult<Vec<_>>>())??;
    Ok(VectorStepEnv { episodes, threads: threads.max(1) })
}
