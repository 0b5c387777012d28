//! The lines of a generated benchmark, written as a stream: a trace of a million actions is never
//! held in memory.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::tasks::{InstanceId, Problem};

/// Optional fields of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The reference actions.
    pub traces: bool,
    /// A snapshot of the state every N actions, including the start and the end.
    pub states_every: Option<u64>,
}

fn field(out: &mut dyn Write, name: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, ",\"{name}\":")?;
    serde_json::to_writer(&mut *out, value)?;
    Ok(())
}

/// Writes the contract's line of an instance, with what `extras` asks for; returns its reference's
/// steps.
///
/// # Errors
/// When `out` fails.
pub fn write_line(id: &InstanceId, extras: Extras, out: &mut dyn Write) -> io::Result<u64> {
    let spec = id.task.spec();
    let problem = id.problem();
    let reference = problem.reference();

    write!(out, "{{\"id\":\"{id}\"")?;
    field(out, "task", &spec.slug)?;
    field(out, "task_id", &spec.id)?;
    field(out, "category", &spec.category)?;
    field(out, "difficulty", &id.difficulty)?;
    field(out, "index", &id.index)?;
    field(out, "seed", &id.seed())?;
    field(out, "input", &problem.input())?;
    field(out, "answer", &reference.answer)?;
    field(out, "steps", &reference.steps)?;

    if extras.traces {
        actions(problem.as_ref(), out)?;
    }
    if let Some(every) = extras.states_every {
        states(problem.as_ref(), every, out)?;
    }
    out.write_all(b"}\n")?;
    Ok(reference.steps)
}

fn actions(problem: &dyn Problem, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b",\"actions\":[")?;
    let mut machine = problem.start();
    let mut separator = "";
    let mut line = String::new();
    while machine.advance(&mut line) {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &line)?;
        separator = ",";
    }
    out.write_all(b"]")
}

#[derive(Serialize)]
struct Snapshot {
    step: u64,
    state: Value,
}

fn states(problem: &dyn Problem, every: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b",\"states\":[")?;

    let mut machine = problem.start();
    let mut separator = "";
    for step in 0.. {
        // The last state is written too, whatever its step.
        let more = machine.reference().is_some();
        if step % every == 0 || !more {
            out.write_all(separator.as_bytes())?;
            serde_json::to_writer(&mut *out, &Snapshot { step, state: machine.state() })?;
            separator = ",";
        }
        if !more {
            break;
        }
        machine.follow_reference();
    }

    out.write_all(b"]")
}
