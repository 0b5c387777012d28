//! The problem that a request names or contains.

use std::sync::Arc;

use serde_json::Value;

use super::error::{Reason, RequestError};
use super::run_request::RunRequest;
use prime_agent_set::task_program::{OpenError, TaskProgram, TaskPrograms};
use prime_bench::tasks::instance::read_problem;
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};
use prime_problems::Custom;

/// The name of a problem that came with the request.
pub(crate) const OWN_INPUT: &str = "input";

/// Maximum steps of the reference for finding out whether an input has a solution: some
/// milliseconds. A longer search is bounded by its budget, like every run.
const SEARCHED_STEPS_MAX: u64 = 100_000;

/// A problem to solve, and its name in results.
#[derive(Clone)]
pub struct Instance {
    /// `<task>/<difficulty>/<index>`, followed by `@<base seed>` unless that is the benchmark's, or
    /// `input` for a problem that came with the request.
    pub name: String,
    /// The problem.
    pub problem: Arc<dyn Problem>,
    /// The digest of the task's module, if a client has uploaded it.
    pub module: Option<String>,
    /// The digest of the task's program, if one is configured.
    pub program: Option<String>,
}

impl Instance {
    /// The instance that a request names or contains. May compute for milliseconds, and blocks
    /// while the program of a task answers.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn of(tasks: &TaskPrograms, request: &RunRequest) -> Result<Self, RequestError> {
        if let Some(problem) = &request.problem {
            return Ok(Self::given(custom(request, problem)?));
        }

        let task = request.task.as_ref().ok_or(RequestError::NoTask)?;
        if let Some(program) = program_of(tasks, task)? {
            return program_instance(tasks.asker(), &program, task, request);
        }
        let task = tasks::find(task).map_err(|error| RequestError::field("task", error))?;

        if let Some(input) = &request.input {
            let names_another = request.difficulty.is_some()
                || request.index.is_some()
                || request.base_seed.is_some();
            if names_another {
                return Err(RequestError::field("input", Reason::InputAndInstance));
            }
            let problem =
                read_problem(task, input).map_err(|error| RequestError::field("input", error))?;
            if problem.is_solvable(SEARCHED_STEPS_MAX) == Some(false) {
                let task = task.spec().slug;
                return Err(RequestError::field("input", Reason::NoSolution { task }));
            }
            return Ok(Self::given(problem));
        }

        let difficulty = request.difficulty.unwrap_or(Difficulty::Easy);
        let base_seed = request.base_seed.unwrap_or(BASE_SEED);
        let id = InstanceId::new(task, difficulty, request.index.unwrap_or(0), base_seed)
            .map_err(|error| RequestError::field("index", error))?;
        // Another base seed gives another instance, which must not bear a benchmark's name.
        let name =
            if base_seed == BASE_SEED { id.to_string() } else { format!("{id}@{base_seed}") };
        Ok(Self { name, problem: id.problem(), module: None, program: None })
    }

    /// Returns whether it is an input of a task that came with the request.
    pub(crate) fn is_own_input(&self) -> bool {
        self.name == OWN_INPUT && self.problem.has_reference()
    }

    /// A problem that came with its request.
    fn given(problem: Arc<dyn Problem>) -> Self {
        Self { name: OWN_INPUT.to_owned(), problem, module: None, program: None }
    }
}

/// The program that computes this task, unless it is a built-in one.
fn program_of(tasks: &TaskPrograms, task: &str) -> Result<Option<Arc<TaskProgram>>, RequestError> {
    if tasks::find(task).is_ok() {
        return Ok(None);
    }
    tasks.get(task).map_err(|error| RequestError::field("task", Reason::Program(error.into())))
}

/// An instance of a task that is a program. Such a task has no instances of its own.
fn program_instance(
    owner: &str,
    program: &Arc<TaskProgram>,
    task: &str,
    request: &RunRequest,
) -> Result<Instance, RequestError> {
    let others = [
        ("difficulty", request.difficulty.is_some()),
        ("index", request.index.is_some()),
        ("base_seed", request.base_seed.is_some()),
    ];
    let needs_input = || Reason::NeedsInput { task: task.to_owned() };
    if let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
        return Err(RequestError::field(other, needs_input()));
    }
    let input =
        request.input.as_ref().ok_or_else(|| RequestError::field("input", needs_input()))?;
    let problem = program.open(owner, input).map_err(|error| {
        let field = if matches!(error, OpenError::Refused { .. }) { "input" } else { "task" };
        RequestError::field(field, Reason::Program(error))
    })?;
    let module = program.uploaded_digest().map(str::to_owned);
    Ok(Instance {
        // A file that cannot be read at present is the program's own affair.
        program: if module.is_none() { program.digest().ok() } else { None },
        module,
        ..Instance::given(problem)
    })
}

/// Reads a custom problem, which no field of a benchmark instance may accompany.
fn custom(request: &RunRequest, problem: &Value) -> Result<Arc<dyn Problem>, RequestError> {
    let others = [
        ("task", request.task.is_some()),
        ("input", request.input.is_some()),
        ("difficulty", request.difficulty.is_some()),
        ("index", request.index.is_some()),
        ("base_seed", request.base_seed.is_some()),
    ];
    if let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
        return Err(RequestError::field(other, Reason::ExcludedByProblem));
    }

    let custom = Custom::read(problem).map_err(RequestError::Problem)?;
    Ok(custom.problem())
}
