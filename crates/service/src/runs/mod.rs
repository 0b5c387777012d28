//! Durable runs: accepted once they are in the journal, recorded event by event, and resumed by the
//! next process from the last commit.
//!
//! Guarantees: an accepted run is never lost; a committed step never changes; an uncommitted step
//! may be computed twice but becomes visible once.
//!
//! The parts:
//! - data: `spec` (what to run), `progress` (counts), `record` (what users see), `live_run` (an
//!   open run in memory);
//! - into the journal: a `recorder` observes a run and appends to its `event_stream`; the thread of
//!   `writer` commits the pending events of many streams as one `batch`; `backpressure` makes runs
//!   wait for it;
//! - execution: `service` accepts runs and is the hub of all others, `admission` counts them;
//!   `execute` submits them to the runtime, with the `accepted_agents` or not at all; `resume` and
//!   `fork` start from what `replay` rebuilds, and `leases` says which runs of a shared journal are
//!   this node's, `elsewhere` waits for the others and says what they lack, `nodes` asks other
//!   nodes;
//! - out of the journal: `listing`, `event_reader`, `trace`, `reviews`, `comparison`, `retention`;
//!   `index` answers questions about the steps of a run.

mod accepted_agents;
mod admission;
mod backpressure;
mod batch;
mod comparison;
mod elsewhere;
mod event_reader;
mod event_stream;
mod execute;
mod fork;
mod index;
mod leases;
mod listing;
mod live_run;
mod nodes;
mod progress;
mod record;
mod recorder;
mod replay;
mod resume;
mod retention;
mod reviews;
mod service;
mod spec;
mod trace;
mod writer;

pub use comparison::{ArmFigures, Comparison};
pub use event_reader::EventBatch;
pub use event_stream::Committed;
pub use index::{
    Column, ConstraintMeaning, Course, Divergence, FoundStep, RoundNode, RunComparison, RunTree,
    RunVote, StackFrame, StepDetail, StepList, StepSummary, TrajectoryEnd, TrajectoryNode,
    TrajectoryShape, Wanted, WhatFollowed, decision_name,
};
pub use leases::Leases;
pub use listing::RunPage;
pub use live_run::LiveRun;
pub use record::{RunRecord, Status};
pub use replay::BeforeStep;
pub use retention::Cleanup;
pub use reviews::{FlaggedStep, ReviewDecision, ReviewLine};
pub use service::{Accepted, NewRun, RunError, Runs, WrapObserver};
pub use spec::{Origin, RunSpec, needs_of};
pub use trace::TraceContent;
