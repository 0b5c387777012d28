//! Object-safe interface to tasks: a [`Problem`] is an instance of some task, a [`Machine`] a state
//! of one. JSON is confined to this module and its child, which implements the interface for every
//! typed task; the typed tasks never see it.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::rng::TaskRng;
use super::spec::{Constraint, Difficulty, Kind, Kinds, Severity, Spec};
use super::task::{PathDraw, Task};
use super::violations::Violations;
use crate::output::value::equal;

mod erased;

pub use erased::Erased;

/// Why a line was not applied. Reports count the two separately.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The line matches none of the task's action forms.
    #[error("not an action line")]
    Unparsable,
    /// The line is an action that cannot be applied to this state.
    #[error("cannot be applied here: {0}")]
    Illegal(&'static str),
    /// The steps of this machine are asked of a program, and it was not asked about this line yet:
    /// see [`Machine::foresee`].
    #[error("the task's program has not answered about this line")]
    Unanswered,
}

/// Why the program that computes a machine's steps gave no answer about a line.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unanswered {
    /// Why the program gave no answer.
    pub error: Box<dyn Error + Send + Sync>,
    /// It contradicts itself, so that asking again would not help.
    pub is_contradiction: bool,
}

/// A line's step on its way.
pub type Foresight<'m> = Pin<Box<dyn Future<Output = Result<(), Unanswered>> + Send + 'm>>;

/// An invalid input or state of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task}: {detail}")]
pub struct BadInput {
    /// The task's slug.
    pub task: &'static str,
    /// What is wrong, and where.
    pub detail: String,
}

/// The result of the reference algorithm on an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The answer of the last state.
    pub answer: Value,
    /// Actions in the reference trace.
    pub steps: u64,
}

/// A broken constraint, as verdicts show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The constraint's name.
    pub name: Cow<'static, str>,
    /// What the constraint demands, in words.
    pub meaning: Cow<'static, str>,
    /// How grave a violation is.
    pub severity: Severity,
}

/// A constraint as prompts show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The constraint's name.
    pub name: Cow<'static, str>,
    /// `None` for a constraint in words: only a verifier that reads text can judge it.
    pub kind: Option<Kind>,
    /// How grave a violation is.
    pub severity: Severity,
    /// What the constraint demands, in words.
    pub meaning: Cow<'static, str>,
}

/// A saved state. Cheap to clone.
#[derive(Clone)]
pub struct Snapshot(Arc<dyn Any + Send + Sync>);

impl Snapshot {
    /// Saves a state.
    pub fn of<S: Send + Sync + 'static>(state: S) -> Self {
        Self(Arc::new(state))
    }

    /// The state. Panics unless the snapshot was made by the same kind of machine.
    pub fn get<S: 'static>(&self) -> &S {
        self.0.downcast_ref().expect("invariant: a snapshot goes back to its own task")
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

/// A task with its types erased.
pub trait AnyTask: Send + Sync {
    /// The constant part of the task.
    fn spec(&self) -> &'static Spec;

    /// Draws the instance of a seed.
    fn generate(&self, difficulty: Difficulty, seed: u64) -> Arc<dyn Problem>;

    /// Reads an `input` object.
    ///
    /// # Errors
    /// Names the field that is missing, of the wrong type, unknown or out of range.
    fn read_input(&self, input: &Value) -> Result<Arc<dyn Problem>, BadInput>;

    /// The number of instances, if they are given instead of drawn. Given instances have no levels,
    /// and are the same under every base seed.
    fn given(&self) -> Option<u32> {
        None
    }

    /// Where the instance of this index comes from, if it is given: a file and a line, for messages.
    fn source_of(&self, _index: u32) -> Option<String> {
        None
    }

    /// The instance of this index, which is below [`AnyTask::given`] where that limits it.
    fn instance(&self, difficulty: Difficulty, base_seed: u64, index: u32) -> Arc<dyn Problem> {
        self.generate(difficulty, self.spec().seed(base_seed, difficulty, index))
    }
}

/// One instance of a task, immutable and shared.
pub trait Problem: Send + Sync {
    /// The constant part of the instance's task.
    fn spec(&self) -> &'static Spec;
    /// The instance's input, as on the task's page.
    fn input(&self) -> Value;
    /// A machine in the first state.
    fn start(&self) -> Box<dyn Machine>;

    /// A machine in a state read from the JSON that [`Machine::state`] writes. The state need not
    /// lie on any trace.
    ///
    /// # Errors
    /// Names the field of the state that is missing, of the wrong type, unknown or out of range.
    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput>;

    /// T_max: a bound on the steps of valid traces that follows from the input's size.
    fn steps_max(&self) -> u64;

    /// Most proposals of a trajectory, rejected ones included, if the problem itself limits them.
    fn proposals_max(&self) -> Option<u64> {
        None
    }

    /// Returns whether its steps are asked of a program. Its machines know a line only after
    /// [`Machine::foresee`], and keep each state of a trace, because replaying one would ask again.
    fn is_asked(&self) -> bool {
        false
    }

    /// A random state of the reference trace, if the task can jump there.
    fn on_path(&self, draw: PathDraw, rng: &mut TaskRng) -> Option<Box<dyn Machine>>;
    /// Returns whether a reference algorithm exists; a client's own problem has none.
    fn has_reference(&self) -> bool {
        true
    }

    /// Returns whether there are checks besides the form of lines.
    fn has_checks(&self) -> bool {
        true
    }

    /// The smallest set of constraint kinds that is sound here: a complete trace that these find
    /// clean ends in a right answer.
    fn sound(&self) -> Kinds {
        self.spec().sound
    }

    /// The problem statement.
    fn statement(&self) -> Cow<'_, str> {
        self.spec().page.algorithm.trim().into()
    }

    /// The data that the statement refers to.
    fn data(&self) -> Value {
        self.input()
    }

    /// The constraints in order; `format` is the first.
    fn rules(&self) -> Vec<Rule> {
        let rule = |c: &'static Constraint| Rule {
            name: c.name.into(),
            kind: Some(c.kind),
            severity: c.severity,
            meaning: c.meaning.into(),
        };
        self.spec().constraints.iter().map(rule).collect()
    }

    /// Returns whether there are constraints in words, which only a verifier that reads text can
    /// judge.
    fn needs_reader(&self) -> bool {
        false
    }

    /// Judges an answer by the task's goal test; `None` if only the reference answer is right.
    fn goal(&self, answer: &Value) -> Option<bool>;

    /// Returns whether an answer is right. Runs the reference unless the task has a goal test. Must
    /// not reach a model.
    fn accepts(&self, answer: &Value) -> bool {
        self.goal(answer).unwrap_or_else(|| equal(answer, &self.reference().answer))
    }

    /// Returns whether the reference comes to an answer; `None` where it has not ended after
    /// `steps` steps, or the problem has none.
    fn is_solvable(&self, steps: u64) -> Option<bool> {
        if !self.has_reference() {
            return None;
        }

        let mut machine = self.start();
        for _ in 0..steps {
            if !machine.follow_reference() {
                return Some(machine.ended());
            }
        }
        machine.ended().then_some(true)
    }

    /// Steps of the reference trace; `None` where it has more than `most`, does not come to an
    /// answer, or the problem has none.
    fn reference_steps(&self, most: u64) -> Option<u64> {
        if !self.has_reference() {
            return None;
        }

        let mut machine = self.start();
        let steps = (0..most).take_while(|_| machine.follow_reference()).count() as u64;
        machine.ended().then_some(steps)
    }

    /// Runs the reference algorithm to its end.
    fn reference(&self) -> Reference {
        let mut machine = self.start();
        let mut steps = 0;
        while machine.follow_reference() {
            steps += 1;
        }

        // A reference that gets stuck before its end has no answer.
        Reference { answer: machine.answer().unwrap_or(Value::Null), steps }
    }
}

/// A state of an instance, with at most one candidate successor awaiting its verdict.
pub trait Machine: Send + Sync {
    /// The constant part of the machine's task.
    fn spec(&self) -> &'static Spec;
    /// The instance.
    fn problem(&self) -> Arc<dyn Problem>;

    /// Parses a line and applies it to a copy of the state, which becomes the candidate.
    ///
    /// # Errors
    /// [`Refusal`]; there is then no candidate, and the state is unchanged.
    fn propose(&mut self, line: &str) -> Result<(), Refusal>;

    /// Asks about a line, so that [`Machine::propose`] and [`Machine::replay`] know it in this
    /// state;
    /// `None` where the machine computes its steps itself.
    fn foresee<'m>(&'m mut self, _line: &'m str) -> Option<Foresight<'m>> {
        None
    }

    /// Like [`Machine::foresee`], but blocks the thread, for replays outside of a runtime.
    ///
    /// # Errors
    /// There is no answer, and why.
    fn foresee_blocking(&mut self, _line: &str) -> Result<(), Unanswered> {
        Ok(())
    }

    /// The constraints of these kinds that the candidate breaks. Without a candidate the last line
    /// was refused, which breaks `format` alone.
    fn violations(&self, kinds: Kinds) -> Violations;

    /// The constraints in a result of [`Machine::violations`], by name.
    fn broken(&self, violations: Violations) -> Vec<Broken> {
        let name = |c: &'static Constraint| Broken {
            name: c.name.into(),
            meaning: c.meaning.into(),
            severity: c.severity,
        };
        violations.iter(self.spec()).map(name).collect()
    }

    /// Returns whether there is a candidate, and the trace ends with it.
    fn candidate_ends(&self) -> bool;

    /// Returns whether the checks that accept the answer of this state would refuse another one in
    /// its place; true if there is no answer yet. Checks that would not refuse another answer prove
    /// nothing. The constraints of the benchmark's tasks refuse others.
    fn refuses_other_answers(&self) -> bool {
        true
    }

    /// Makes the candidate the state. A no-op without one.
    fn commit(&mut self);

    /// Parses and applies a line in place without judging it: for lines that were committed before.
    ///
    /// # Errors
    /// Like [`Machine::propose`].
    fn replay(&mut self, line: &str) -> Result<(), Refusal>;

    /// Applies the reference action, if there is one.
    fn follow_reference(&mut self) -> bool;

    /// The reference action's line.
    fn reference(&self) -> Option<String>;

    /// Applies the reference action, if there is one, and overwrites `line` with it.
    fn advance(&mut self, line: &mut String) -> bool {
        line.clear();
        match self.reference() {
            Some(reference) => line.push_str(&reference),
            None => return false,
        }
        self.follow_reference()
    }

    /// Returns whether the trace has ended.
    fn ended(&self) -> bool;
    /// The answer, if the trace has ended.
    fn answer(&self) -> Option<Value>;
    /// All lines that a search may try, if they are few; `None` for tasks that do not search.
    fn choices(&self) -> Option<Vec<String>>;
    /// The state, without the candidate, as on the task's page.
    fn state(&self) -> Value;

    /// The state as text for a model that does not know the task: its JSON, unless the problem has
    /// a view of its own.
    fn view(&self) -> String {
        self.state().to_string()
    }

    /// Instance and state with their types erased, for [`typed`].
    fn parts(&self) -> Option<(&dyn Any, &dyn Any)> {
        None
    }

    /// Overwrites `text` with the state's JSON.
    fn write_state(&self, text: &mut Vec<u8>) {
        text.clear();
        serde_json::to_writer(text, &self.state()).expect("invariant: writing to memory succeeds");
    }

    /// Saves the state, without the candidate.
    fn snapshot(&self) -> Snapshot;
    /// Restores a saved state of the same instance and drops the candidate.
    fn restore(&mut self, snapshot: &Snapshot);
    /// Copies the machine.
    fn fork(&self) -> Box<dyn Machine>;
}

/// Instance and state of a machine of task `T`; `None` for any other machine.
pub fn typed<T: Task>(machine: &dyn Machine) -> Option<(&T::Instance, &T::State)> {
    let (instance, state) = machine.parts()?;
    Some((instance.downcast_ref()?, state.downcast_ref()?))
}
