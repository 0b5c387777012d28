//! A model for tests: it answers what a function says, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::agents::AgentError;
use crate::agents::model::{Ask, Model, Reply};
use prime_bench::tasks::{self, Difficulty, Problem};
use prime_protocol::{Limits, Trajectory, Usage};

type Answer = Box<dyn Fn(&Ask) -> Result<Reply, AgentError> + Send + Sync>;

pub struct Fake {
    answer: Answer,
    pub asked: Mutex<Vec<Ask>>,
}

impl Fake {
    pub fn new(answer: impl Fn(&Ask) -> Result<Reply, AgentError> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), asked: Mutex::default() })
    }

    /// Always the same text, for 10 + 3 tokens.
    pub fn saying(text: &'static str) -> Arc<Self> {
        Self::new(move |_| Ok(reply(text)))
    }

    /// The last question.
    pub fn last(&self) -> Ask {
        self.asked.lock().expect("no panic with the lock").last().expect("it was asked").clone()
    }

    pub fn count(&self) -> usize {
        self.asked.lock().expect("no panic with the lock").len()
    }
}

pub const USAGE: Usage = Usage { prompt: 10, completion: 3 };

pub fn reply(text: &str) -> Reply {
    Reply { text: text.to_owned(), usage: USAGE, ..Reply::default() }
}

#[async_trait]
impl Model for Fake {
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError> {
        let answer = (self.answer)(&ask);
        self.asked.lock().expect("no panic with the lock").push(ask);
        answer
    }
}

pub const LIMITS: Limits = Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8 };

/// A trajectory at its start.
pub fn started(problem: &dyn Problem) -> Trajectory {
    Trajectory::new(problem.start(), &LIMITS)
}

/// A trajectory on the worked example of a task, after so many steps of its algorithm.
pub fn walked(task: &str, steps: usize) -> Trajectory {
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
