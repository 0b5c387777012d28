//! Tasks that users define: the inputs on which they are measured, verdicts of their programs over
//! whole traces, and states on the traces of their hints.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Arc;

use prime_agent_set::AgentError;
use prime_agent_set::task_program::{OpenError, TaskPrograms};
use prime_bench::tasks::{
    AnyTask, BadInput, Difficulty, Kinds, Machine, Problem, Severity, Spec, Unanswered,
};
use prime_problems::lossy;
use serde_json::Value;

use super::run_trace::RunTrace;

/// Longest file of inputs, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Most inputs of a task.
const INPUTS_MAX: usize = 100_000;

/// Refused inputs of a file that a message names.
const NAMED_MAX: usize = 10;

/// A task that a user defines, with the inputs on which it is measured.
pub struct GivenTask {
    spec: &'static Spec,
    /// At least one.
    problems: Vec<Arc<dyn Problem>>,
    /// The file of the inputs, and the line of each.
    path: String,
    lines: Vec<usize>,
    /// Digest of its program or module.
    pub digest: String,
}

/// Why a user's task cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// Neither the benchmark nor the configuration has the task.
    #[error(
        "there is no task `{name}`: it is not in the benchmark, and `tasks.{name}` is not \
         configured{}", known(.configured)
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of the configured tasks.
        configured: Vec<String>,
    },
    /// The task has no file of inputs.
    #[error(
        "the task `{name}` has no inputs to be measured on: set `tasks.{name}.inputs` to a file \
         with one JSON value a line"
    )]
    NoInputs {
        /// The task's name.
        name: String,
    },
    /// The file of inputs cannot be read, is empty, or has too many inputs.
    #[error("tasks.{name}.inputs: {path}: {reason}")]
    File {
        /// The task's name.
        name: String,
        /// The path, as configured.
        path: String,
        /// What is wrong with the file.
        reason: String,
    },
    /// Some lines are not JSON, or the program refuses them.
    #[error("tasks.{name}.inputs: {path}:\n{}", .lines.join("\n"))]
    Lines {
        /// The task's name.
        name: String,
        /// The path, as configured.
        path: String,
        /// One sentence for each of the first ten lines, and the number of the others.
        lines: Vec<String>,
    },
    /// The program failed at an input.
    #[error("tasks.{name}.inputs: {path}: line {line}: {error}")]
    Line {
        /// The task's name.
        name: String,
        /// The path, as configured.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// How the program failed.
        error: Box<AgentError>,
    },
    /// The program cannot be started or identified.
    #[error(transparent)]
    Program(#[from] AgentError),
}

fn known(configured: &[String]) -> String {
    if configured.is_empty() {
        String::new()
    } else {
        format!(" (configured: {})", configured.join(", "))
    }
}

/// Reads the lines of a file of inputs that are not blank, with their numbers.
fn lines(path: &str) -> Result<Vec<(usize, String)>, String> {
    // First, because opening a pipe would wait for its writer.
    let metadata =
        std::fs::metadata(path).map_err(|error| format!("the file cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("it is longer than {} MiB", FILE_BYTES_MAX >> 20));
    }

    let file = File::open(path).map_err(|error| format!("the file cannot be read: {error}"))?;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file.take(FILE_BYTES_MAX)).lines()) {
        let line = line.map_err(|error| format!("line {number}: {error}"))?;
        // Some editors begin a file in UTF-8 with a byte order mark.
        let line = line.trim_start_matches('\u{feff}').trim();
        if !line.is_empty() {
            found.push((number, line.to_owned()));
        }
    }
    match found.len() {
        0 => Err("it has no input: write one JSON value a line".to_owned()),
        count if count > INPUTS_MAX => {
            Err(format!("it has {count} inputs; give at most {INPUTS_MAX}"))
        }
        _ => Ok(found),
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    match lossy(text) {
        Some(lossy) if lossy.path.is_empty() => Err(lossy.to_string()),
        Some(lossy) => Err(format!("at {}: {lossy}", lossy.path)),
        None => Ok(value),
    }
}

impl GivenTask {
    /// The configured task of this name with the inputs of its file. Blocks while its program
    /// answers.
    ///
    /// # Errors
    /// There is no such task, no such file, or an input that the program refuses: all of them are
    /// named, at most ten. A program that gives no answer ends the reading at its line.
    pub fn open(
        tasks: &TaskPrograms,
        name: &str,
        inputs: Option<&str>,
    ) -> Result<Self, GivenError> {
        let unknown = || GivenError::Unknown { name: name.to_owned(), configured: tasks.names() };
        let program = tasks.get(name)?.ok_or_else(unknown)?;
        let path = inputs.ok_or_else(|| GivenError::NoInputs { name: name.to_owned() })?;
        let (name, path) = (name.to_owned(), path.to_owned());
        let found = match lines(&path) {
            Ok(found) => found,
            Err(reason) => return Err(GivenError::File { name, path, reason }),
        };

        let digest = program.digest()?;
        let (mut problems, mut at, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for (number, text) in &found {
            let input = match parsed(text) {
                Ok(input) => input,
                Err(reason) => {
                    wrong.push(format!("line {number}: {reason}"));
                    continue;
                }
            };
            match program.open("", &input) {
                Ok(problem) => {
                    problems.push(problem);
                    at.push(*number);
                }
                Err(OpenError::Refused { reason, .. }) => {
                    wrong.push(format!("line {number}: the program refuses the input: {reason}"));
                }
                Err(OpenError::Program(error)) => {
                    return Err(GivenError::Line {
                        name,
                        path,
                        line: *number,
                        error: Box::new(error),
                    });
                }
                Err(OpenError::Unknown { .. }) => return Err(unknown()),
            }
        }

        if !wrong.is_empty() {
            let more = wrong.len().saturating_sub(NAMED_MAX);
            wrong.truncate(NAMED_MAX);
            wrong.extend((more > 0).then(|| format!("and {more} more")));
            return Err(GivenError::Lines { name, path, lines: wrong });
        }
        Ok(Self { spec: problems[0].spec(), problems, path, lines: at, digest })
    }

    /// A task that lives as long as the process, as those of the benchmark do.
    pub fn kept(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    /// The instances, in the order of the file.
    pub fn problems(&self) -> &[Arc<dyn Problem>] {
        &self.problems
    }
}

impl AnyTask for GivenTask {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Gives the inputs in turn.
    fn generate(&self, _: Difficulty, seed: u64) -> Arc<dyn Problem> {
        let place = seed % self.problems.len() as u64;
        Arc::clone(&self.problems[usize::try_from(place).unwrap_or_default()])
    }

    /// Only inputs of the file can be read.
    fn read_input(&self, input: &Value) -> Result<Arc<dyn Problem>, BadInput> {
        let known = self.problems.iter().find(|problem| problem.input() == *input);
        known.cloned().ok_or_else(|| BadInput {
            task: self.spec.slug,
            detail: "it is not one of the inputs on which this task is measured".to_owned(),
        })
    }

    fn given(&self) -> Option<u32> {
        Some(u32::try_from(self.problems.len()).expect("invariant: at most `INPUTS_MAX`"))
    }

    fn source_of(&self, index: u32) -> Option<String> {
        let line = self.lines.get(usize::try_from(index).ok()?)?;
        Some(format!("{}: line {line}", self.path))
    }

    fn instance(&self, difficulty: Difficulty, _: u64, index: u32) -> Arc<dyn Problem> {
        self.generate(difficulty, index.into())
    }
}

/// What a task's program says about a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceVerdict {
    /// The answer of the state in which the trace ends.
    pub answer: Option<Value>,
    /// Lines that the program did not apply.
    pub refused: u64,
    /// Lines before the first that was refused or broke a constraint.
    pub first_error: Option<u64>,
    /// The worst broken constraint of the lines that were applied.
    pub worst: Option<Severity>,
}

impl TraceVerdict {
    /// True if the program finds nothing wrong with the steps to this answer. A line that it
    /// refuses leaves the state as it is, and is not a step.
    pub fn proves(&self, answer: &Value) -> bool {
        self.worst.is_none() && self.answer.as_ref() == Some(answer)
    }
}

/// Asks a task's program about each line of a trace.
///
/// # Errors
/// The program gives no answer.
pub async fn verdict_of(
    problem: &dyn Problem,
    lines: &[Box<str>],
) -> Result<TraceVerdict, Unanswered> {
    let mut machine = problem.start();
    let mut verdict = TraceVerdict::default();
    for (place, line) in (0..).zip(lines) {
        if let Some(foresight) = machine.foresee(line) {
            foresight.await?;
        }

        let is_applied = machine.propose(line).is_ok();
        let broken = machine.broken(machine.violations(Kinds::ALL));
        if !broken.is_empty() {
            verdict.first_error.get_or_insert(place);
        }
        if is_applied {
            let worst = broken.iter().map(|broken| broken.severity).chain(verdict.worst);
            verdict.worst = worst.max_by_key(|severity| severity.tenths());
        } else {
            verdict.refused += 1;
        }
        machine.commit();
    }

    verdict.answer = machine.answer();
    Ok(verdict)
}

/// What the task's program says about the answer of a run: about the first trace that proves it,
/// else about the last one that gave it, else about the deepest one.
///
/// # Errors
/// The program gives no answer.
pub async fn verdict_of_run(
    problem: &dyn Problem,
    answer: Option<&Value>,
    trace: &RunTrace,
) -> Result<TraceVerdict, Unanswered> {
    let mut first = None;
    if let Some(answer) = answer {
        for lines in trace.traces_for(answer) {
            let verdict = verdict_of(problem, &lines).await?;
            if verdict.proves(answer) {
                return Ok(verdict);
            }
            first.get_or_insert(verdict);
        }
    }
    match (first, trace.lines_for(None)) {
        (Some(verdict), _) => Ok(verdict),
        (None, Some(lines)) => verdict_of(problem, &lines).await,
        (None, None) => Ok(TraceVerdict::default()),
    }
}

/// The states on the trace of the program's hints, the last one left out; none where the start has
/// no hint.
///
/// # Errors
/// The program gives no answer, or refuses its own hint.
pub async fn hinted_states(problem: &dyn Problem) -> Result<Vec<Box<dyn Machine>>, String> {
    let mut machine = problem.start();
    let mut states = Vec::new();
    while let Some(hint) = machine.reference().filter(|_| !machine.ended()) {
        if states.len() as u64 >= problem.steps_max() {
            return Err(format!("its hints lead to no end in {} steps", problem.steps_max()));
        }
        if let Some(foresight) = machine.foresee(&hint) {
            foresight.await.map_err(|error| error.to_string())?;
        }

        states.push(machine.fork());
        machine.replay(&hint).map_err(|refusal| format!("its hint `{hint}`: {refusal}"))?;
    }
    Ok(states)
}
