//! Exceptions: what Python people expect for each mistake, and no panic beyond this crate.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use prime_bench::tasks::{BadInput, UnknownTask};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    prime_bench,
    EpisodeOver,
    PyRuntimeError,
    "A step was taken in an episode that has ended: call `reset()`."
);

/// `ValueError` that names the argument.
pub fn value_error(field: &str, reason: impl Display) -> PyErr {
    PyValueError::new_err(format!("{field}: {reason}"))
}

/// `TypeError` that names the argument.
pub fn type_error(field: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let given = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{field}: expected {wanted}, not {given}"))
}

/// `KeyError` with the nearest name.
pub fn unknown_task(error: &UnknownTask) -> PyErr {
    let list = |category| match category {
        None => "prime_bench.tasks()".to_owned(),
        Some(of) => format!("prime_bench.tasks(category=\"{of}\")"),
    };
    PyKeyError::new_err(error.message(list))
}

pub fn bad_input(field: &str, error: &BadInput) -> PyErr {
    value_error(field, format!("{}: {}", error.task, error.detail))
}

/// Runs the benchmark's code without the interpreter's lock. Its panic, which would be a fault of a
/// task, becomes a `RuntimeError`.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| guarded(work))
}

/// Runs the benchmark's code; its panic becomes a `RuntimeError`.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    // Callers drop or end whatever a panic has left half done.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        PyRuntimeError::new_err(
            "the task could not carry this out; that is a fault of the task, please report the call",
        )
    })
}
