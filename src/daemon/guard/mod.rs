//! placeholder
pub mod body;
pub mod json;
