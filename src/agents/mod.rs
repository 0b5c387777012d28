//! The agents: the traits Executor, Verifier and Coordinator, and what implements them. No actors here.

pub mod prompt;
