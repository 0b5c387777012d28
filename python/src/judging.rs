//! Judges whole outputs: the four stages, and the composite reward of their traces.

use prime_bench::judge::{ActionList, Body, Judgement, judge_body, read_output};
use prime_bench::output::Found;
use prime_bench::tasks::Kinds;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::episode::{Episode, Rules};
use crate::errors::{detached, guarded, type_error, value_error};
use crate::instance::{Named, instance};
use crate::parallel;
use crate::values::{self, RewardParts, answer_to_json, parts, to_python};

fn lines(field: &str, object: &Bound<'_, PyAny>) -> PyResult<ActionList> {
    let wanted = || type_error(field, "a sequence of str", object);
    // To Python a text is a sequence of texts too.
    if object.is_instance_of::<PyString>() {
        return Err(wanted());
    }

    let mut list = ActionList::default();
    for (place, line) in object.try_iter().map_err(|_| wanted())?.enumerate() {
        let line = line?;
        let text = line
            .cast::<PyString>()
            .map_err(|_| type_error(&format!("{field}[{place}]"), "a str", &line))?;
        list.push(&values::model_text(text));
    }

    Ok(list)
}

/// A model's text, or a dict of `actions` and `answer`.
fn body(field: &str, output: &Bound<'_, PyAny>) -> PyResult<Body> {
    if let Ok(text) = output.cast::<PyString>() {
        return Ok(Body::Text(values::model_text(text).into_owned()));
    }

    let Ok(fields) = output.cast::<PyDict>() else {
        return Err(type_error(field, "a str, or a dict of actions and answer", output));
    };

    let (mut actions, mut answer) = (None, None);
    for (name, value) in fields.iter() {
        match values::text(field, &name)?.as_str() {
            "actions" if value.is_none() => {}
            "actions" => actions = Some(lines(&format!("{field}[\"actions\"]"), &value)?),
            "answer" => answer = Some(answer_to_json(&format!("{field}[\"answer\"]"), &value)?),
            other => {
                return Err(value_error(
                    field,
                    format!("unknown key {other:?}: there are actions and answer"),
                ));
            }
        }
    }

    Ok(Body::Structured { actions, answer })
}

fn judge_one(named: &Named, body: &Body, kinds: Kinds) -> PyResult<Judgement> {
    named.check_reference()?;
    guarded(|| judge_body(named.problem.as_ref(), named.name(), named.difficulty(), body, kinds))
}

fn as_dict<'py>(py: Python<'py>, judgement: &Judgement) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(judgement).map_err(|error| value_error("output", error))?;
    to_python(py, &value)
}

/// Judges an output; a dict as `bench check --details` writes it.
#[pyfunction(name = "_judge")]
#[pyo3(signature = (output, instance, kinds=None))]
pub fn judge<'py>(
    py: Python<'py>,
    output: &Bound<'py, PyAny>,
    instance: &Bound<'py, PyAny>,
    kinds: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (named, kinds) = (self::instance("instance", instance)?, values::kinds(kinds, Kinds::ALL)?);
    let body = body("output", output)?;
    let judgement = detached(py, || judge_one(&named, &body, kinds))??;
    as_dict(py, &judgement)
}

/// Judges outputs of instances, pair by pair.
#[pyfunction(name = "_judge_many")]
#[pyo3(
    signature = (outputs, instances, kinds=None, threads=None),
    text_signature = "(outputs, instances, kinds=None, threads=0)"
)]
pub fn judge_many<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    instances: &Bound<'py, PyAny>,
    kinds: Option<&Bound<'py, PyAny>>,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let kinds = values::kinds(kinds, Kinds::ALL)?;
    let threads = parallel::threads(threads)?;

    let sequence = |field, object: &Bound<'py, PyAny>| {
        let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>();
        let items = if is_text { None } else { object.try_iter().ok() };
        items.ok_or_else(|| type_error(field, "a sequence", object))?.collect::<PyResult<Vec<_>>>()
    };

    let (outputs, instances) = (sequence("outputs", outputs)?, sequence("instances", instances)?);

    if outputs.len() != instances.len() {
        let message = format!("there are {} for {} outputs", instances.len(), outputs.len());
        return Err(value_error("instances", message));
    }

    let mut work = Vec::with_capacity(outputs.len());
    for (place, (output, instance)) in outputs.iter().zip(&instances).enumerate() {
        let named = self::instance(&format!("instances[{place}]"), instance)?;
        work.push((named, body(&format!("outputs[{place}]"), output)?));
    }

    let judged = detached(py, || {
        parallel::map(&work, threads, 1, |(named, body)| judge_one(named, body, kinds))
    })?;

    judged.into_iter().map(|judgement| as_dict(py, &judgement?)).collect()
}

/// The composite reward of an output's trace, or of lines, and of each line.
#[pyfunction(name = "_composite_reward")]
#[pyo3(signature = (output, instance, kinds=None, weights=None))]
pub fn composite_reward(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    instance: &Bound<'_, PyAny>,
    kinds: Option<&Bound<'_, PyAny>>,
    weights: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RewardParts, Vec<f64>)> {
    let named = self::instance("instance", instance)?;
    let kinds = values::kinds(kinds, Kinds::WITHOUT_TRANSITION)?;
    let rules = Rules::new(kinds, values::weights(weights)?, u64::MAX, false);

    let spec = named.task.spec();

    let (actions, answer) = match output.cast::<PyString>() {
        Ok(text) => {
            let found = read_output(&values::model_text(text), spec);
            let actions =
                if let Found::Read(actions) = found.actions { Some(actions) } else { None };
            (actions, found.answer)
        }
        Err(_) => (Some(lines("output", output)?), Found::Absent),
    };

    // Without a trace there is one line, which is not an action.
    let actions =
        actions.filter(|actions| !actions.is_empty()).unwrap_or_else(|| [""].into_iter().collect());

    detached(py, || {
        let mut episode = Episode::new(named, rules);
        let lines: Vec<&str> = actions.iter().collect();
        let steps = episode.judge_all(lines.into_iter(), &answer);
        (parts(&episode.rewards.trajectory()), steps.iter().map(|reward| reward.total).collect())
    })
}
