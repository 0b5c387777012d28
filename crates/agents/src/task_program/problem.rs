//! An instance of a task that is a program.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::answer::{Answer, Asked, BadAnswer, Outcome, State, read, rules_of};
use super::computer::Computer;
use super::error::OpenError;
use super::limits::{
    ASKED_TWICE_EVERY, STATES_BYTES_MAX, SUCCESSORS_SHARE, UPLOADED_STATES_BYTES_MAX,
};
use super::machine::Walk;
use super::node::{Node, Step};
use crate::{AgentError, Failure};
use prime_bench::tasks::{BadInput, Machine, PathDraw, Problem, Spec, TaskRng};

/// An instance, and the program that computes its steps. Cheap to clone.
#[derive(Clone)]
pub(super) struct Asking(Arc<Inner>);

struct Inner {
    pool: Computer,
    /// The owner for whom questions are asked.
    owner: Arc<str>,
    spec: &'static Spec,
    input: Value,
    start: Arc<Node>,
    steps_max: u64,
    /// Keeps the task's program known while instances use it.
    #[expect(dead_code, reason = "what is kept here lives as long as the problem")]
    program: Arc<dyn Any + Send + Sync>,
}

#[derive(Serialize)]
struct StartRequest<'r> {
    id: u64,
    input: &'r Value,
}

fn request(fields: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(fields).expect("invariant: requests serialise");
    line.push(b'\n');
    line
}

/// A request about a step. `state` is JSON, which is sent back as it is stored.
fn step_request(id: u64, input: &Value, state: &str, line: &str) -> Vec<u8> {
    let line = Value::from(line);
    format!("{{\"id\":{id},\"input\":{input},\"state\":{state},\"line\":{line}}}\n").into_bytes()
}

fn node(state: State, below: usize) -> Node {
    let State { value, found, choices, view, hint, answer, .. } = state;
    let mut node = Node::alone(&value);
    node.path_bytes += below;
    (node.found, node.choices, node.view) = (found, choices, view);
    (node.hint, node.answer) = (hint, answer);
    node
}

/// The error that a program contradicts itself.
fn inconsistent(pool: &Computer, what: &str) -> AgentError {
    pool.error(
        Failure::Inconsistent,
        format!("{what}; what it answers must depend on the request alone"),
    )
}

impl Asking {
    /// Asks for the start of an instance, twice. Keeps `program` as long as the instance.
    pub async fn open(
        (pool, owner): (Computer, Arc<str>),
        spec: impl FnOnce(&Computer) -> Result<&'static Spec, AgentError>,
        input: Value,
        program: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self, OpenError> {
        let ask = || pool.ask(&owner, |id| request(&StartRequest { id, input: &input }));
        let line = ask().await?;
        // A process has answered the handshake by now.
        let spec = spec(&pool)?;
        let bad = |BadAnswer { failure, reason }| pool.error(failure, reason);
        let rules = rules_of(spec);
        let first = read(&line, Asked::Start, &rules).map_err(bad)?;
        let again = read(&ask().await?, Asked::Start, &rules).map_err(bad)?;
        if first.digest != again.digest {
            let what = "it answered differently when it was asked twice for the start of an input";
            return Err(inconsistent(&pool, what).into());
        }

        match first.outcome {
            Outcome::Refused(reason) => Err(OpenError::Refused { task: spec.slug, reason }),
            Outcome::State(state) => {
                let steps_max = state.steps_max;
                let start = Arc::new(node(*state, 0));
                let inner = Inner { pool, owner, spec, input, start, steps_max, program };
                Ok(Self(Arc::new(inner)))
            }
        }
    }

    pub fn spec(&self) -> &'static Spec {
        self.0.spec
    }

    async fn ask(&self, state: &str, line: &str) -> Result<Answer, AgentError> {
        let Inner { pool, owner, spec, input, .. } = &*self.0;
        let answer = pool.ask(owner, |id| step_request(id, input, state, line)).await?;
        read(&answer, Asked::Step, &rules_of(spec))
            .map_err(|BadAnswer { failure, reason }| pool.error(failure, reason))
    }

    fn contradiction(&self, line: &str, what: &str) -> AgentError {
        inconsistent(
            &self.0.pool,
            &format!("it {what} `{}`", prime_printable::printable_line(line)),
        )
    }

    /// What a line does in a state. Asks unless that is known.
    pub async fn step(&self, at: &Arc<Node>, line: &str) -> Result<Step, AgentError> {
        if let Some(known) = at.step(line) {
            return Ok(known);
        }

        let Answer { digest: first, outcome } = self.ask(&at.state, line).await?;
        let differs = || self.contradiction(line, "answered differently when asked twice about");
        if at.digest(line).is_some_and(|before| before != first) {
            return Err(differs());
        }
        let ends = matches!(&outcome, Outcome::State(state) if state.answer.is_some());
        if (ends || first.is_multiple_of(ASKED_TWICE_EVERY))
            && self.ask(&at.state, line).await?.digest != first
        {
            return Err(differs());
        }

        let step = match outcome {
            Outcome::Refused(reason) => {
                if at.choices.iter().flatten().any(|choice| choice == line) {
                    let what = format!("refused ({reason}), but listed among the choices,");
                    return Err(self.contradiction(line, &what));
                }
                Step::Refused(reason.into())
            }
            Outcome::State(state) => Step::Leads(Arc::new(node(*state, at.path_bytes))),
        };
        if let Step::Leads(node) = &step {
            self.check_size(at, node)?;
        }
        at.learn(line, first, step.clone());
        Ok(step)
    }

    fn check_size(&self, at: &Node, node: &Node) -> Result<(), AgentError> {
        let too_large = |what: &str, most: usize| {
            let reason = format!("{what} take more than {} MiB; write smaller states", most >> 20);
            Err(AgentError { is_transient: false, ..self.0.pool.error(Failure::TooLong, reason) })
        };
        let is_foreign = self.0.pool.is_foreign();
        let most = if is_foreign { UPLOADED_STATES_BYTES_MAX } else { STATES_BYTES_MAX };
        if node.path_bytes > most {
            return too_large("the states of a trajectory", most);
        }
        if at.successor_bytes() + node.state.len() > most / SUCCESSORS_SHARE {
            return too_large("the states after one state", most / SUCCESSORS_SHARE);
        }
        Ok(())
    }
}

impl Problem for Asking {
    fn spec(&self) -> &'static Spec {
        self.0.spec
    }

    fn input(&self) -> Value {
        self.0.input.clone()
    }

    fn start(&self) -> Box<dyn Machine> {
        Box::new(Walk::at(self.clone(), Arc::clone(&self.0.start)))
    }

    /// Only the state: what else the program says about it is not known.
    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        Ok(Box::new(Walk::at(self.clone(), Arc::new(Node::alone(state)))))
    }

    fn steps_max(&self) -> u64 {
        self.0.steps_max
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn on_path(&self, _: PathDraw, _: &mut TaskRng) -> Option<Box<dyn Machine>> {
        None
    }

    fn has_reference(&self) -> bool {
        false
    }

    fn goal(&self, _: &Value) -> Option<bool> {
        None
    }
}
