//! A problem and an executor that cost nothing, so that a measurement shows coordination alone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{AgentReply, Executor, Proposal, Sampling};
use prime_bench::tasks::machine::{BadInput, Machine, Problem, Refusal, Snapshot};
use prime_bench::tasks::page::Page;
use prime_bench::tasks::{
    Category, Constraint, Kind, Kinds, PathDraw, Severity, Spec, TaskRng, Violations,
};
use prime_protocol::Trajectory;

/// The action of every step; anything after a space is payload.
const STEP: &str = "step";

static SPEC: Spec = Spec {
    id: u16::MAX,
    slug: "null",
    title: "Null",
    category: Category::SystemSimulation,
    sizes: ["", "", ""],
    actions: &[STEP],
    constraints: &[Constraint {
        name: "format",
        kind: Kind::Format,
        severity: Severity::Critical,
        meaning: "the line begins with the word `step`",
    }],
    sound: Kinds::WITHOUT_TRANSITION,
    decisive: &[],
    hidden: &[],
    paper: prime_bench::tasks::spec::PaperFigures { steps: 0, baseline: 0.0, prime: 0.0 },
    page: &Page::EMPTY,
};

#[derive(Clone)]
struct Null {
    steps: u64,
}

/// A state: the number of steps taken, and whether one is proposed.
struct NullMachine {
    problem: Null,
    done: u64,
    is_proposed: bool,
}

/// A problem of `steps` equal steps.
pub fn null_problem(steps: u64) -> Arc<dyn Problem> {
    Arc::new(Null { steps })
}

impl Problem for Null {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn input(&self) -> Value {
        json!({ "steps": self.steps })
    }

    fn start(&self) -> Box<dyn Machine> {
        Box::new(NullMachine { problem: self.clone(), done: 0, is_proposed: false })
    }

    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        let done = state["done"].as_u64().filter(|done| *done <= self.steps);

        let refuse = || BadInput {
            task: SPEC.slug,
            detail: format!("state field `done`: give 0 to {}", self.steps),
        };
        let done = done.ok_or_else(refuse)?;
        Ok(Box::new(NullMachine { problem: self.clone(), done, is_proposed: false }))
    }

    fn steps_max(&self) -> u64 {
        self.steps
    }

    fn on_path(&self, _: PathDraw, _: &mut TaskRng) -> Option<Box<dyn Machine>> {
        None
    }

    fn goal(&self, answer: &Value) -> Option<bool> {
        Some(*answer == json!(self.steps))
    }
}

impl Machine for NullMachine {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn problem(&self) -> Arc<dyn Problem> {
        Arc::new(self.problem.clone())
    }

    fn propose(&mut self, line: &str) -> Result<(), Refusal> {
        let is_step =
            line.strip_prefix(STEP).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        self.is_proposed = is_step && !self.ended();
        if self.is_proposed { Ok(()) } else { Err(Refusal::Unparsable) }
    }

    fn violations(&self, kinds: Kinds) -> Violations {
        if self.is_proposed { Violations::NONE } else { Violations::FORMAT.of_kinds(&SPEC, kinds) }
    }

    fn candidate_ends(&self) -> bool {
        self.is_proposed && self.done + 1 == self.problem.steps
    }

    fn commit(&mut self) {
        self.done += u64::from(self.is_proposed);
        self.is_proposed = false;
    }

    fn replay(&mut self, _: &str) -> Result<(), Refusal> {
        // Replayed lines were accepted once: they are not parsed again.
        self.done += 1;
        Ok(())
    }

    fn follow_reference(&mut self) -> bool {
        let open = !self.ended();
        self.done += u64::from(open);
        open
    }

    fn reference(&self) -> Option<String> {
        (!self.ended()).then(|| STEP.to_owned())
    }

    fn ended(&self) -> bool {
        self.done >= self.problem.steps
    }

    fn answer(&self) -> Option<Value> {
        self.ended().then(|| json!(self.done))
    }

    fn choices(&self) -> Option<Vec<String>> {
        None
    }

    fn view(&self) -> String {
        self.done.to_string()
    }

    fn state(&self) -> Value {
        json!({ "done": self.done })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.done)
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.done = *snapshot.get::<u64>();
        self.is_proposed = false;
    }

    fn fork(&self) -> Box<dyn Machine> {
        Box::new(Self { problem: self.problem.clone(), done: self.done, is_proposed: false })
    }
}

/// Always proposes the null problem's step.
pub struct NullExecutor {
    line: String,
}

impl NullExecutor {
    /// An executor whose lines carry `bytes` of payload.
    pub fn with_payload(bytes: usize) -> Self {
        Self { line: null_line(bytes) }
    }
}

/// An action of the null problem with a payload.
pub fn null_line(payload_bytes: usize) -> String {
    let payload = if payload_bytes == 0 {
        String::new()
    } else {
        // The separating space is the first byte of the payload.
        format!(" {}", "x".repeat(payload_bytes - 1))
    };
    format!("{STEP}{payload}")
}

impl Executor for NullExecutor {
    fn propose<'a>(&'a self, _: &'a Trajectory, _: Sampling) -> AgentReply<'a, Proposal> {
        AgentReply::now(Ok(Proposal { line: self.line.clone(), ..Proposal::default() }))
    }
}
