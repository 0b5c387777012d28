//! The machine of a client's problem: lines are steps, and one of them is the answer.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::answer::Refused;
use super::checks::{Finding, parts_of};
use super::custom::{Custom, SPEC};
use super::definition::StepMode;
use super::limits::{LINE_BYTES_MAX, STEPS_BYTES_MAX, STEPS_MAX, STEPS_PARTS_MAX};
use super::probe::refuses_others;
use super::steps::{Read, Steps};
use super::view::view;
use prime_bench::tasks::{
    Broken, Kind, Kinds, Machine, Problem, Refusal, Snapshot, Spec, Violations,
};

/// Prefix of the line with the answer, where lines are steps.
const ANSWER: &str = "answer:";

#[derive(Clone, Debug, Default)]
struct State {
    steps: Steps,
    answer: Option<Arc<Value>>,
}

/// A successor state awaiting its verdict. Its checks are evaluated when first asked for, and once.
#[derive(Debug)]
struct Candidate {
    state: State,
    invariant: OnceLock<Vec<Finding>>,
    terminal: OnceLock<Vec<Finding>>,
}

/// A state of a client's problem.
pub struct Walk {
    problem: Custom,
    state: State,
    candidate: Option<Candidate>,
    /// Why the last line was refused.
    refused: Option<Refused>,
}

impl Walk {
    /// The state before the first line.
    pub fn start(problem: Custom) -> Self {
        Self::at(problem, State::default())
    }

    fn at(problem: Custom, state: State) -> Self {
        Self { problem, state, candidate: None, refused: None }
    }

    /// The state after a line.
    fn after(&self, line: &str) -> Result<State, Refused> {
        if self.ended() {
            return Err(Refused::illegal("the trace has ended"));
        }
        if line.trim().is_empty() {
            return Err(Refused::form("the line is empty"));
        }
        if line.len() > LINE_BYTES_MAX {
            let bytes = line.len();
            return Err(Refused::form(format!(
                "the line has {bytes} bytes; write at most {LINE_BYTES_MAX}"
            )));
        }
        if line.chars().any(char::is_control) {
            return Err(Refused::form("the line has a control character in it, such as a tab"));
        }

        let text = match self.problem.as_definition().steps {
            StepMode::Single => Some(line),
            StepMode::Stepwise => line.strip_prefix(ANSWER),
        };
        // Cheap: the copy shares the steps.
        let mut next = self.state.clone();

        match text {
            Some(text) => next.answer = Some(Arc::new(self.problem.answers().read(text)?)),
            None if next.steps.count() >= STEPS_MAX => {
                return Err(Refused::illegal("there are too many steps"));
            }
            // The answer is the last line.
            None if next.steps.count() + 1 >= self.problem.steps_max() => {
                return Err(Refused::illegal("only the answer may follow: no step is left"));
            }
            None => {
                let reader = self.problem.steps();
                let read = reader.read(line)?;
                let read =
                    (!reader.keeps_text()).then(|| Read { parts: parts_of(&read), value: read });

                let parts = next.steps.parts() + read.as_ref().map_or(0, |read| read.parts);
                let bytes = next.steps.bytes() + line.len();
                if bytes > STEPS_BYTES_MAX || parts > STEPS_PARTS_MAX {
                    return Err(Refused::illegal(
                        "the steps are too long together; write the answer",
                    ));
                }
                next.steps.push(line, read);
            }
        }

        Ok(next)
    }

    /// The broken checks of a kind in the candidate.
    fn findings<'c>(&self, candidate: &'c Candidate, kind: Kind) -> &'c [Finding] {
        let (cell, state) = match kind {
            Kind::Invariant => (&candidate.invariant, &candidate.state),
            Kind::Terminal if candidate.state.answer.is_some() => {
                (&candidate.terminal, &candidate.state)
            }
            // Checks of the answer have to wait for it, and there are none of other kinds.
            Kind::Terminal | Kind::Format | Kind::Transition => return &[],
        };

        cell.get_or_init(|| {
            self.problem.checks().broken(kind, &state.steps, state.answer.as_deref())
        })
    }

    /// What was found when the check of the candidate failed.
    fn finding(&self, constraint: usize) -> Option<&Finding> {
        let candidate = self.candidate.as_ref()?;
        let found = [&candidate.invariant, &candidate.terminal]
            .into_iter()
            .filter_map(OnceLock::get)
            .flatten();
        found.into_iter().find(|finding| finding.constraint == constraint)
    }

    fn format(&self) -> Broken {
        let form = &SPEC.constraints[0];
        let meaning = match (&self.candidate, &self.refused) {
            (None, Some(refused)) => format!("{}: {}", form.meaning, refused.detail).into(),
            _ => form.meaning.into(),
        };
        Broken { name: form.name.into(), meaning, severity: form.severity }
    }

    fn named(&self, constraint: usize) -> Option<Broken> {
        let definition = self.problem.as_definition().constraints.get(constraint)?;
        let said = [&definition.message, &definition.check, &definition.text];
        let text = said.into_iter().find_map(Option::as_deref).unwrap_or_default();

        let meaning = match self.finding(constraint) {
            Some(Finding { reason: Some(reason), .. }) => {
                format!("{text} (it could not be evaluated: {reason})")
            }
            // A message may be a sentence.
            Some(Finding { values: Some(values), .. }) => {
                format!("{}: {values}", text.trim_end_matches('.'))
            }
            _ => text.to_owned(),
        };
        Some(Broken {
            name: definition.name.clone().into(),
            meaning: meaning.into(),
            severity: definition.severity,
        })
    }
}

impl Machine for Walk {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.problem.problem()
    }

    fn propose(&mut self, line: &str) -> Result<(), Refusal> {
        self.candidate = None;
        self.refused = None;

        match self.after(line) {
            Ok(state) => {
                self.candidate = Some(Candidate {
                    state,
                    invariant: OnceLock::new(),
                    terminal: OnceLock::new(),
                });
                Ok(())
            }
            Err(refused) => {
                let refusal = refused.refusal.clone();
                self.refused = Some(refused);
                Err(refusal)
            }
        }
    }

    fn violations(&self, kinds: Kinds) -> Violations {
        let mut found = Violations::NONE;
        // The line was refused: its form is wrong, and there is nothing else to check.
        let Some(candidate) = &self.candidate else {
            found.require(0, !kinds.contains(Kind::Format));
            return found;
        };

        for kind in kinds.iter() {
            self.findings(candidate, kind)
                .iter()
                .for_each(|finding| found.require(finding.constraint + 1, false));
        }

        found
    }

    fn broken(&self, violations: Violations) -> Vec<Broken> {
        let format = violations.contains(0).then(|| self.format());
        let constraints = 0..self.problem.as_definition().constraints.len();
        let named = constraints
            .filter(|place| violations.contains(place + 1))
            .filter_map(|place| self.named(place));

        format.into_iter().chain(named).collect()
    }

    fn candidate_ends(&self) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.state.answer.is_some())
    }

    fn commit(&mut self) {
        if let Some(candidate) = self.candidate.take() {
            self.state = candidate.state;
        }
    }

    fn replay(&mut self, line: &str) -> Result<(), Refusal> {
        self.state = self.after(line).map_err(|refused| refused.refusal)?;
        Ok(())
    }

    fn follow_reference(&mut self) -> bool {
        false
    }

    fn reference(&self) -> Option<String> {
        None
    }

    fn refuses_other_answers(&self) -> bool {
        let Some(answer) = self.state.answer.as_deref() else { return true };
        let problem = &self.problem;
        let parts = (problem.as_definition(), problem.answers(), problem.checks());
        refuses_others(parts, &self.state.steps, answer)
    }

    fn ended(&self) -> bool {
        self.state.answer.is_some()
    }

    fn answer(&self) -> Option<Value> {
        self.state.answer.as_deref().cloned()
    }

    fn choices(&self) -> Option<Vec<String>> {
        None
    }

    /// The executor's view, in several lines.
    fn view(&self) -> String {
        view(self.problem.as_definition(), &self.state.steps.lines())
    }

    fn state(&self) -> Value {
        json!({"steps": self.state.steps.lines(), "answer": self.state.answer.as_deref()})
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.state.clone())
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.state.clone_from(snapshot.get());
        self.candidate = None;
        self.refused = None;
    }

    fn fork(&self) -> Box<dyn Machine> {
        Box::new(Self::at(self.problem.clone(), self.state.clone()))
    }
}
