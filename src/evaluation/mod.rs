//! Evaluation of the runtime and its agents: whole runs, single steps, verifiers, throughput.
//! Starts what it measures; prints nothing.

pub mod comparison;
pub mod overlap;
pub mod own_task;
pub mod rollout_labels;
mod run_trace;
mod running_system;
pub mod single_step;
pub mod solve;
pub mod strategies;
pub mod study;
#[cfg(test)]
mod systems;
pub mod task_speed;
pub mod turn_overhead;
pub mod verifier_accuracy;
