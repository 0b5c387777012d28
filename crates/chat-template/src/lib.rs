//! Renders the chat template of a model's file as Python's `transformers` does, and keeps special
//! tokens in messages from being taken for the template's own.
//!
//! Templates come from files that anybody may have written: rendering is bounded in work and in
//! length, and no template reaches files or the clock. The crate does no I/O.

#![warn(missing_docs)]

mod dialect;
mod protect;
mod python;
mod template;
mod variables;

pub use protect::{Piece, SpecialTokens};
pub use template::{ChatTemplate, Message, TemplateError};
pub use variables::{VariableError, check_variables};
