//! Judges steps and answers without a run, one at a time or in batches, with a limit on the work of
//! a request.
//!
//! - `route`: the route. `judged`: what it and the MCP tools do with a body.
//! - `pool`: the threads that judge, and the queue before them.

mod judged;
mod pool;
pub mod route;

pub use judged::{Pools, judged, verify};
pub use pool::Abandoned;
