//! How families of models mark their thinking. One table of marks tells thinking apart from what an
//! output says ([`split`]) and says how a template's model begins and ends it ([`Form`]). Pure.

#![warn(missing_docs)]

mod families;
mod form;
mod split;

pub use form::Form;
pub use split::{Split, is_quoted, split, thought, without_reasoning};
