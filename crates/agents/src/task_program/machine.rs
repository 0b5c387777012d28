//! The machine of a task that is a program: it moves between states that the program has returned.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::Value;

use super::limits::{LINE_BYTES_MAX, VIOLATIONS_MAX};
use super::node::{Node, Step};
use super::problem::Asking;
use crate::{AgentError, Failure};
use prime_bench::tasks::{
    Broken, Foresight, Kind, Kinds, Machine, Problem, Refusal, Severity, Snapshot, Spec,
    Unanswered, Violations,
};

/// A state of an instance.
pub(super) struct Walk {
    problem: Asking,
    at: Arc<Node>,
    /// The last line that was asked about: kept here while other trajectories leave the state.
    foreseen: Option<(Box<str>, Step)>,
    candidate: Option<Arc<Node>>,
    /// Why the program refused the last line.
    refused: Option<Arc<str>>,
}

impl Walk {
    pub fn at(problem: Asking, at: Arc<Node>) -> Self {
        Self { problem, at, foreseen: None, candidate: None, refused: None }
    }

    /// The effect of a line, if it is known.
    fn known(&self, line: &str) -> Result<Step, Refusal> {
        if self.at.answer.is_some() {
            return Err(Refusal::Illegal("the trace has ended"));
        }
        let is_line = !line.trim().is_empty()
            && line.len() <= LINE_BYTES_MAX
            && !line.chars().any(char::is_control);
        if !is_line {
            return Err(Refusal::Unparsable);
        }

        let foreseen = self.foreseen.as_ref().filter(|(of, _)| **of == *line);
        foreseen
            .map(|(_, step)| step.clone())
            .or_else(|| self.at.step(line))
            .ok_or(Refusal::Unanswered)
    }

    fn is_unanswered(&self, line: &str) -> bool {
        matches!(self.known(line), Err(Refusal::Unanswered))
    }

    fn go_to(&mut self, node: Arc<Node>) {
        let left = std::mem::replace(&mut self.at, node);
        left.leave();
        (self.foreseen, self.candidate, self.refused) = (None, None, None);
    }
}

impl Machine for Walk {
    fn spec(&self) -> &'static Spec {
        self.problem.spec()
    }

    fn problem(&self) -> Arc<dyn Problem> {
        Arc::new(self.problem.clone())
    }

    fn propose(&mut self, line: &str) -> Result<(), Refusal> {
        (self.candidate, self.refused) = (None, None);
        match self.known(line)? {
            Step::Leads(node) => {
                self.candidate = Some(node);
                Ok(())
            }
            Step::Refused(reason) => {
                self.refused = Some(reason);
                Err(Refusal::Illegal("the task's program refuses it"))
            }
        }
    }

    fn foresee<'m>(&'m mut self, line: &'m str) -> Option<Foresight<'m>> {
        Some(Box::pin(async move {
            if self.is_unanswered(line) {
                let step = self.problem.step(&self.at, line).await;
                let unanswered = |error: AgentError| Unanswered {
                    is_contradiction: error.failure == Failure::Inconsistent,
                    error: Box::new(error),
                };
                self.foreseen = Some((line.into(), step.map_err(unanswered)?));
            }
            Ok(())
        }))
    }

    fn foresee_blocking(&mut self, line: &str) -> Result<(), Unanswered> {
        if self.is_unanswered(line)
            && let Some(foresight) = self.foresee(line)
        {
            return block_on(foresight);
        }
        Ok(())
    }

    fn violations(&self, kinds: Kinds) -> Violations {
        let mut found = Violations::NONE;
        let Some(candidate) = &self.candidate else {
            found.require(0, !kinds.contains(Kind::Format));
            return found;
        };
        for (at, broken) in candidate.found.iter().enumerate() {
            found.require(at + 1, !kinds.contains(broken.kind));
        }
        found
    }

    /// Bit 0 is the line's form, the others are what the program found in this step.
    fn broken(&self, violations: Violations) -> Vec<Broken> {
        let format = || {
            let form = &self.spec().constraints[0];
            let meaning = match &self.refused {
                Some(reason) => reason.to_string().into(),
                None => form.meaning.into(),
            };
            Broken { name: form.name.into(), meaning, severity: Severity::Critical }
        };
        let found = self.candidate.iter().flat_map(|candidate| &candidate.found);
        let named = (1..=VIOLATIONS_MAX).zip(found).filter(|(at, _)| violations.contains(*at));

        let format = violations.contains(0).then(format);
        let named = named.map(|(_, found)| Broken {
            name: found.name.clone().into(),
            meaning: found.message.clone().into(),
            severity: found.severity,
        });
        format.into_iter().chain(named).collect()
    }

    fn candidate_ends(&self) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.answer.is_some())
    }

    fn commit(&mut self) {
        if let Some(candidate) = self.candidate.take() {
            self.go_to(candidate);
        }
    }

    fn replay(&mut self, line: &str) -> Result<(), Refusal> {
        match self.known(line)? {
            Step::Leads(node) => {
                self.go_to(node);
                Ok(())
            }
            Step::Refused(_) => Err(Refusal::Illegal("the task's program refuses it")),
        }
    }

    fn follow_reference(&mut self) -> bool {
        false
    }

    fn reference(&self) -> Option<String> {
        self.at.hint.clone()
    }

    fn ended(&self) -> bool {
        self.at.answer.is_some()
    }

    fn answer(&self) -> Option<Value> {
        self.at.answer.clone()
    }

    fn choices(&self) -> Option<Vec<String>> {
        self.at.choices.clone()
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.at.state).expect("invariant: it was written from a value")
    }

    fn view(&self) -> String {
        self.at.view.clone().unwrap_or_else(|| self.at.state.to_string())
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of(Arc::clone(&self.at))
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        let node: &Arc<Node> = snapshot.get();
        self.at = Arc::clone(node);
        (self.foreseen, self.candidate, self.refused) = (None, None, None);
    }

    fn fork(&self) -> Box<dyn Machine> {
        let mut fork = Self::at(self.problem.clone(), Arc::clone(&self.at));
        fork.foreseen.clone_from(&self.foreseen);
        Box::new(fork)
    }
}
