//! Problems of clients: a statement, an input, and constraints that are evaluated or read. They run on the same machines'
//! interface as the tasks of the benchmark. Whatever a client writes is bounded before it is used: see [`limits`].

mod answer;
mod checks;
mod custom;
mod definition;
mod error;
pub mod limits;
mod machine;
mod pattern;
mod schema;
mod steps;
mod view;

#[cfg(test)]
mod tests;

pub use custom::{Custom, SPEC, Textual};
pub use definition::{AnswerForm, ConstraintDefinition, Definition, StepMode};
pub use error::ProblemError;
