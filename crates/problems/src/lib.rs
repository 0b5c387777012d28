//! Client problems: a statement, an input, and constraints that are evaluated or read by a
//! verifier. They implement the benchmark's machine interface. All client input is bounded before
//! use: see [`limits`].

#![warn(missing_docs)]

mod answer;
mod checks;
mod custom;
mod definition;
mod error;
mod integers;
mod keywords;
pub mod limits;
mod machine;
mod numbers;
mod pattern;
mod probe;
mod schema;
mod steps;
mod view;

#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;

pub use checks::Condition;
pub use custom::{Custom, SPEC, Textual};
pub use definition::{ConstraintDefinition, Definition, LineForm, StepMode};
pub use error::ProblemError;
pub use integers::{Lossy, Lost, lossy};
pub use schema::Schema;
