//! Entries of data sets: drawn and scored many at once, on several threads, without the
//! interpreter's lock.

use std::sync::Arc;

use prime_bench::judge::Body;
use prime_bench::prompts::{self, Style};
use prime_bench::tasks::inputs::{ensure_fresh, is_in_benchmark};
use prime_bench::tasks::{Difficulty, InstanceId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString};

use crate::errors::{detached, guarded, type_error, value_error};
use crate::instance::{Instance, Named, find, instance_id};
use crate::parallel::{self, threads};
use crate::recent;
use crate::values::{self, difficulty, integer};

/// Instances of one base seed that differ from each other, and base seeds of one `seed`.
const CHUNK: u64 = 1_000;
const CHUNKS: u64 = 1_024;
const SEED_MAX: u64 = 1 << 32;
/// Far from the benchmark's 42 and from anything that people type.
const FIRST_BASE_SEED: u64 = 1 << 43;

/// How often an entry is drawn again while the benchmark has its input, and how far apart the base
/// seeds of these draws lie: beyond those of all seeds, and within 53 bits, which every reader of
/// JSON keeps.
const ATTEMPTS: u64 = 256;
const ATTEMPT_SHIFT: u32 = 44;

/// Fewest entries that are worth a thread of their own.
const PER_THREAD: usize = 16;

/// What to do where the benchmark leaves too few inputs.
const REMEDY: &str = "with benchmark_inputs=True its inputs are drawn, too";

/// The instances with these identities, in order. Recently used ones are at hand, the others are
/// drawn.
fn instances(ids: &[InstanceId], threads: usize) -> Vec<Arc<Named>> {
    let known = recent::known(ids.iter());
    let missing: Vec<_> =
        ids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(id, _)| *id).collect();

    let drawn = parallel::map(&missing, threads, PER_THREAD, |id| Arc::new(Named::of(*id)));
    recent::keep(drawn.iter());

    let mut drawn = drawn.into_iter();
    known.into_iter().filter_map(|known| known.or_else(|| drawn.next())).collect()
}

/// The instance of a name, which may be one that was used recently.
#[pyfunction(name = "_instance")]
pub fn instance(
    py: Python<'_>,
    task: &Bound<'_, PyAny>,
    difficulty: &Bound<'_, PyAny>,
    index: &Bound<'_, PyAny>,
    base_seed: &Bound<'_, PyAny>,
) -> PyResult<Instance> {
    let id = instance_id(task, Some(difficulty), Some(index), Some(base_seed))?;
    let mut found = detached(py, || instances(&[id], 1))?;
    found.pop().map(Instance).ok_or_else(|| value_error("index", "there is no such instance"))
}

/// Which instances a data set has, and what is asked for them.
#[pyclass(frozen, module = "prime_bench._native", name = "_Source")]
pub struct Source {
    task: &'static dyn prime_bench::tasks::AnyTask,
    /// At least one.
    levels: Vec<Difficulty>,
    /// `None`: derived from `seed`.
    base_seed: Option<u64>,
    seed: u64,
    /// Whether entries may have inputs that the benchmark has. With a base seed they always may.
    benchmark_inputs: bool,
    style: Style,
}

/// An entry without its Python objects.
struct Drawn {
    id: InstanceId,
    question: String,
    answer: String,
}

impl Source {
    /// The instance of an entry, or of a further attempt to draw one.
    fn id(&self, index: u64, attempt: u64) -> InstanceId {
        let place = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let turn = usize::try_from(index % self.levels.len() as u64).unwrap_or_default();
        let (index, base_seed) = if let Some(base_seed) = self.base_seed {
            (place(index), base_seed)
        } else {
            let base_seed = FIRST_BASE_SEED + self.seed * CHUNKS + index / CHUNK;
            (place(index % CHUNK), base_seed + (attempt << ATTEMPT_SHIFT))
        };
        InstanceId { task: self.task, difficulty: self.levels[turn], index, base_seed }
    }

    /// The instances of entries. One that meets the benchmark is drawn again under other base seeds,
    /// so that each depends on its own index alone.
    fn named(&self, indices: &[u64], threads: usize) -> PyResult<Vec<Arc<Named>>> {
        let ids: Vec<_> = indices.iter().map(|index| self.id(*index, 0)).collect();
        let mut named = instances(&ids, threads);
        if self.base_seed.is_some() || self.benchmark_inputs {
            return Ok(named);
        }

        let mut places: Vec<usize> = (0..named.len()).collect();
        for attempt in 1..ATTEMPTS {
            let meets = parallel::map(&places, threads, PER_THREAD, |place| {
                is_in_benchmark(named[*place].problem.as_ref())
            });
            let met = places.iter().zip(meets).filter(|(_, meets)| *meets);
            places = met.map(|(place, _)| *place).collect();
            if places.is_empty() {
                return Ok(named);
            }

            let ids: Vec<_> =
                places.iter().map(|place| self.id(indices[*place], attempt)).collect();
            for (place, again) in places.iter().zip(instances(&ids, threads)) {
                named[*place] = again;
            }
        }

        let reason = "the benchmark has nearly all inputs of this level";
        Err(value_error("difficulty", format!("{reason}; {REMEDY}")))
    }

    fn drawn(&self, indices: &[u64], threads: usize) -> PyResult<Vec<Drawn>> {
        let named = self.named(indices, threads)?;

        let work: Vec<_> = indices.iter().copied().zip(named).collect();
        let drawn = parallel::map(&work, threads, PER_THREAD, |(index, named)| {
            let question = prompts::whole(named.problem.as_ref(), self.style);
            Ok(Drawn {
                id: named.id.unwrap_or_else(|| self.id(*index, 0)),
                question,
                answer: named.reference()?.answer.to_string(),
            })
        });

        drawn.into_iter().collect()
    }

    fn entry<'py>(
        &self,
        py: Python<'py>,
        index: u64,
        drawn: &Drawn,
    ) -> PyResult<Bound<'py, PyDict>> {
        let slug = PyString::intern(py, self.task.spec().slug);

        let metadata = PyDict::new(py);
        metadata.set_item(pyo3::intern!(py, "source_dataset"), &slug)?;
        metadata.set_item(pyo3::intern!(py, "source_index"), index)?;
        metadata.set_item(pyo3::intern!(py, "task"), slug)?;
        metadata.set_item(
            pyo3::intern!(py, "difficulty"),
            PyString::intern(py, drawn.id.difficulty.name()),
        )?;
        metadata.set_item(pyo3::intern!(py, "index"), drawn.id.index)?;
        metadata.set_item(pyo3::intern!(py, "base_seed"), drawn.id.base_seed)?;

        let entry = PyDict::new(py);
        entry.set_item(pyo3::intern!(py, "question"), PyString::new(py, &drawn.question))?;
        entry.set_item(pyo3::intern!(py, "answer"), PyString::new(py, &drawn.answer))?;
        entry.set_item(pyo3::intern!(py, "metadata"), metadata)?;

        Ok(entry)
    }
}

#[pymethods]
impl Source {
    #[new]
    fn new(
        task: &Bound<'_, PyAny>,
        difficulties: Vec<Bound<'_, PyAny>>,
        seed: &Bound<'_, PyAny>,
        base_seed: Option<&Bound<'_, PyAny>>,
        style: &Bound<'_, PyAny>,
        benchmark_inputs: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let task = find(task)?;
        let levels = difficulties.iter().map(difficulty).collect::<PyResult<Vec<_>>>()?;
        if levels.is_empty() {
            return Err(value_error("difficulty", "name at least one of easy, medium, hard"));
        }

        let style = values::style(&values::text("style", style)?, task.spec())?;
        let base_seed =
            base_seed.map(|seed| integer("base_seed", seed, 0, u64::MAX)).transpose()?;

        let seed = integer("seed", seed, 0, SEED_MAX)?;
        let benchmark_inputs: bool = benchmark_inputs
            .extract()
            .map_err(|_| type_error("benchmark_inputs", "a bool", benchmark_inputs))?;

        if base_seed.is_none() && !benchmark_inputs {
            for level in &levels {
                guarded(|| ensure_fresh(task, *level, FIRST_BASE_SEED + seed * CHUNKS))?
                    .map_err(|error| value_error("difficulty", format!("{error}; {REMEDY}")))?;
            }
        }

        Ok(Self { task, levels, base_seed, seed, benchmark_inputs, style })
    }

    /// The instance of an entry.
    fn instance(&self, py: Python<'_>, index: u64) -> PyResult<Instance> {
        let mut found = detached(py, || self.named(&[index], 1))??;
        found.pop().map(Instance).ok_or_else(|| value_error("index", "there is no such instance"))
    }

    /// Entries `start`, `start + stride`, … before `stop`.
    fn entries<'py>(
        &self,
        py: Python<'py>,
        start: i64,
        stop: i64,
        stride: i64,
        threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let threads = self::threads(Some(threads))?;

        let mut indices = Vec::new();
        let mut next = start;

        while (stride > 0 && next < stop) || (stride < 0 && next > stop) {
            indices.push(u64::try_from(next).map_err(|error| value_error("index", error))?);
            next += stride;
        }

        let drawn = detached(py, || self.drawn(&indices, threads))??;

        let entries: Vec<_> = indices
            .iter()
            .zip(&drawn)
            .map(|(index, drawn)| self.entry(py, *index, drawn))
            .collect::<PyResult<_>>()?;

        PyList::new(py, entries)
    }
}

/// The identity of an entry's instance, by its metadata.
fn id_of(entry: &Bound<'_, PyAny>) -> PyResult<InstanceId> {
    let py = entry.py();
    // An entry, or its metadata alone.
    let metadata = entry.get_item(pyo3::intern!(py, "metadata")).unwrap_or_else(|_| entry.clone());
    let missing =
        |_| value_error("entry", "its metadata must have task, difficulty, index and base_seed");

    let task = metadata.get_item(pyo3::intern!(py, "task")).map_err(missing)?;
    let difficulty = metadata.get_item(pyo3::intern!(py, "difficulty")).map_err(missing)?;
    let index = metadata.get_item(pyo3::intern!(py, "index")).map_err(missing)?;
    let base_seed = metadata.get_item(pyo3::intern!(py, "base_seed")).map_err(missing)?;

    instance_id(&task, Some(&difficulty), Some(&index), Some(&base_seed))
}

fn sequence<'py>(field: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    // To Python these are sequences too.
    let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>();

    let items = if is_text {
        None
    } else {
        object.cast::<PySequence>().ok().and_then(|found| found.to_list().ok())
    };

    items.ok_or_else(|| type_error(field, "a sequence", object))
}

/// Whether each answer is right, as 1.0 or 0.0; None is not.
#[pyfunction(name = "_scores")]
pub fn scores(
    py: Python<'_>,
    answers: &Bound<'_, PyAny>,
    entries: &Bound<'_, PyAny>,
    threads: &Bound<'_, PyAny>,
) -> PyResult<Vec<f64>> {
    let threads = self::threads(Some(threads))?;
    let (answers, entries) = (sequence("answers", answers)?, sequence("entries", entries)?);

    if answers.len() != entries.len() {
        let message = format!("there are {} for {} answers", entries.len(), answers.len());
        return Err(value_error("entries", message));
    }

    let ids = entries.iter().map(|entry| id_of(&entry)).collect::<PyResult<Vec<_>>>()?;

    let mut bodies = Vec::with_capacity(answers.len());
    for (place, answer) in answers.iter().enumerate() {
        bodies.push(if answer.is_none() {
            None
        } else {
            let text = answer.cast::<PyString>();
            let text = text
                .map_err(|_| type_error(&format!("answers[{place}]"), "a str or None", &answer))?;
            Some(Body::Text(values::model_text(text).into_owned()))
        });
    }

    detached(py, || {
        let work: Vec<_> = instances(&ids, threads).into_iter().zip(bodies).collect();
        let right = parallel::map(&work, threads, PER_THREAD, |(named, body)| match body {
            Some(body) => named.is_correct(body),
            None => Ok(false),
        });
        right.into_iter().map(|right| right.map(|right| if right { 1.0 } else { 0.0 })).collect()
    })?
}
