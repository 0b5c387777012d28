//! Arguments and results: JSON values as Python objects, integers within bounds, sets of kinds,
//! weights.

use std::borrow::Cow;

use prime_bench::prompts::Style;
use prime_bench::tasks::{Difficulty, Kind, Kinds, Spec};
use prime_protocol::{Reward, RewardWeights};
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

use crate::errors::{type_error, value_error};

/// Deepest nesting: as deep as serde_json reads.
const DEPTH_MAX: usize = 127;

/// A JSON value as `dict`, `list`, `str`, `int`, `float`, `bool` or `None`.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (None, Some(value)) => value.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(entries) => {
            let list = PyList::empty(py);
            entries.iter().try_for_each(|entry| list.append(to_python(py, entry)?))?;
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            fields
                .iter()
                .try_for_each(|(name, value)| dict.set_item(name, to_python(py, value)?))?;
            dict.into_any()
        }
    })
}

/// The JSON value of a Python object; `field` names it in errors.
pub fn to_json(field: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    json_at(field, object, Source::User, 0)
}

/// The JSON value of a model's answer. What JSON cannot say of a `str`, `int` or `float` (lone
/// surrogates, more than 64 bits, NaN) makes the answer wrong; it is not an error of the caller.
pub fn answer_to_json(field: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    json_at(field, object, Source::Model, 0)
}

/// A model's text. Lone surrogates, which are not characters, are replaced: an output that has them
/// is a bad one, and must not stop a training step.
pub fn model_text<'t>(text: &'t Bound<'_, PyString>) -> Cow<'t, str> {
    text.to_string_lossy()
}

/// Whose mistake a value would be that JSON cannot say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Model,
}

fn json_at(
    field: &str,
    object: &Bound<'_, PyAny>,
    source: Source,
    depth: usize,
) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(PyRecursionError::new_err(format!(
            "{field}: nested more than {DEPTH_MAX} deep"
        )));
    }

    if object.is_none() {
        return Ok(Value::Null);
    }

    // Before the integers, which include `bool` in Python.
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }

    let string = |text: &Bound<'_, PyString>| -> PyResult<String> {
        Ok(match source {
            Source::User => text.to_str()?.to_owned(),
            Source::Model => model_text(text).into_owned(),
        })
    };
    if let Ok(text) = object.cast::<PyString>() {
        return string(text).map(Value::String);
    }

    // No answer of a task is a text where a number is wanted.
    let unsayable = |reason: &str| match source {
        Source::User => Err(value_error(field, reason)),
        Source::Model => Ok(Value::String(reason.to_owned())),
    };

    if object.is_instance_of::<PyInt>() {
        let signed = object.extract::<i64>().map(Number::from);
        let number = signed.or_else(|_| object.extract::<u64>().map(Number::from));

        return number
            .map(Value::Number)
            .or_else(|_| unsayable("an integer has more than 64 bits"));
    }

    if let Ok(value) = object.cast::<PyFloat>() {
        let number = Number::from_f64(value.value());
        return number.map(Value::Number).map_or_else(|| unsayable("a number is not finite"), Ok);
    }

    if let Ok(dict) = object.cast::<PyDict>() {
        let mut fields = Map::new();
        for (name, value) in dict.iter() {
            let Ok(name) = name.cast::<PyString>() else {
                return Err(type_error(field, "text as a key", &name));
            };
            fields.insert(string(name)?, json_at(field, &value, source, depth + 1)?);
        }
        return Ok(Value::Object(fields));
    }

    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let entries = object.try_iter()?.map(|entry| json_at(field, &entry?, source, depth + 1));
        return entries.collect::<PyResult<_>>().map(Value::Array);
    }

    Err(type_error(field, "what JSON can say (dict, list, str, int, float, bool, None)", object))
}

/// An integer from `min` to `max`: an `int` or a numpy integer, anything but a `bool`.
pub fn integer(field: &str, object: &Bound<'_, PyAny>, min: u64, max: u64) -> PyResult<u64> {
    let wanted = || type_error(field, "an int", object);
    // `True` is an `int` in Python, but a mistake here.
    if object.is_instance_of::<PyBool>() {
        return Err(wanted());
    }

    let index = object.call_method0("__index__").map_err(|_| wanted())?;
    let value = index.extract::<u64>().ok().filter(|value| (min..=max).contains(value));
    value.ok_or_else(|| value_error(field, format!("{index} is not between {min} and {max}")))
}

pub fn text(field: &str, object: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = object.cast::<PyString>().map_err(|_| type_error(field, "a str", object))?;
    Ok(text.to_str()?.to_owned())
}

pub fn difficulty(object: &Bound<'_, PyAny>) -> PyResult<Difficulty> {
    text("difficulty", object)?.parse().map_err(|error| value_error("difficulty", error))
}

/// A style of prompts that suits a task.
pub fn style(name: &str, spec: &Spec) -> PyResult<Style> {
    let style: Style = name.parse().map_err(|error: String| value_error("style", error))?;
    if style.suits(spec.category) {
        return Ok(style);
    }
    Err(value_error("style", format!("{style} is for sorts, and {} is not one", spec.slug)))
}

/// Kinds of constraints: one name, several, or the default.
pub fn kinds(object: Option<&Bound<'_, PyAny>>, default: Kinds) -> PyResult<Kinds> {
    let Some(object) = object.filter(|object| !object.is_none()) else { return Ok(default) };

    let kind = |object: &Bound<'_, PyAny>| -> PyResult<Kind> {
        text("kinds", object)?.parse().map_err(|error| value_error("kinds", error))
    };

    if object.is_instance_of::<PyString>() {
        return Ok([kind(object)?].into_iter().collect());
    }

    let entries = object.try_iter().map_err(|_| type_error("kinds", "names of kinds", object))?;
    let found: Kinds = entries.map(|entry| kind(&entry?)).collect::<PyResult<_>>()?;

    if found == Kinds::NONE {
        return Err(value_error(
            "kinds",
            "name at least one of format, invariant, transition, terminal",
        ));
    }

    Ok(found)
}

/// The four weights of the composite reward, in the order of the paper; its own by default.
pub fn weights(object: Option<&Bound<'_, PyAny>>) -> PyResult<RewardWeights> {
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(RewardWeights::PAPER);
    };

    let four = "four numbers: task, verify, efficiency, format";

    let numbers = object.try_iter().map_err(|_| type_error("weights", four, object))?;
    let numbers: Vec<f64> = numbers
        .map(|number| {
            let number = number?;
            number.extract::<f64>().map_err(|_| type_error("weights", four, &number))
        })
        .collect::<PyResult<_>>()?;

    match numbers[..] {
        [task, verify, efficiency, format] if numbers.iter().all(|number| number.is_finite()) => {
            Ok(RewardWeights { task, verify, efficiency, format })
        }
        _ => Err(value_error("weights", format!("give {four}, all finite"))),
    }
}

/// A reward as (total, task, verify, efficiency, format).
pub type RewardParts = (f64, f64, f64, f64, f64);

pub fn parts(reward: &Reward) -> RewardParts {
    (reward.total, reward.task, reward.verify, reward.efficiency, reward.format)
}
