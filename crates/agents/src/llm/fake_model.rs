//! A test double of a model: a function answers, and every request is recorded.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::AgentError;
use crate::model::{Completion, CompletionRequest, Model};
use prime_bench::tasks::{self, Difficulty, Problem};
use prime_protocol::{Limits, Trajectory, Usage};

type Answer = Box<dyn Fn(&CompletionRequest) -> Result<Completion, AgentError> + Send + Sync>;

pub struct FakeModel {
    answer: Answer,
    pub requests: Mutex<Vec<CompletionRequest>>,
}

impl FakeModel {
    pub fn new(
        answer: impl Fn(&CompletionRequest) -> Result<Completion, AgentError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), requests: Mutex::default() })
    }

    /// Always answers the same text, for 10 + 3 tokens.
    pub fn saying(text: &'static str) -> Arc<Self> {
        Self::new(move |_| Ok(completion(text)))
    }

    /// The last request.
    pub fn last(&self) -> CompletionRequest {
        self.requests.lock().expect("no panic with the lock").last().expect("it was asked").clone()
    }

    pub fn count(&self) -> usize {
        self.requests.lock().expect("no panic with the lock").len()
    }
}

pub const USAGE: Usage = Usage::new(10, 3);

pub fn completion(text: &str) -> Completion {
    Completion { text: text.to_owned(), usage: USAGE, ..Completion::default() }
}

#[async_trait]
impl Model for FakeModel {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let answer = (self.answer)(&request);
        self.requests.lock().expect("no panic with the lock").push(request);
        answer
    }
}

pub const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

/// A trajectory in its initial state.
pub fn started(problem: &dyn Problem) -> Trajectory {
    Trajectory::new(problem.start(), &LIMITS)
}

/// A trajectory of a task after the given number of reference steps.
pub fn advanced(task: &str, steps: usize) -> Trajectory {
    let problem = tasks::find(task).expect("listed").generate(Difficulty::Easy, 3);
    let mut trajectory = started(problem.as_ref());

    for _ in 0..steps {
        let line = trajectory.machine.reference().expect("a next step");

        trajectory.machine.propose(&line).expect("legal");
        let clean = prime_protocol::Verdict::default();
        trajectory.settle(&line, true, &clean, prime_protocol::Decision::Proceed, &LIMITS);
    }
    trajectory
}
