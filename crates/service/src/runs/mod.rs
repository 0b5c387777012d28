//! Durable runs: accepted once they are in the journal, recorded event by event, and resumed by the
//! next process from the last commit.
//!
//! Guarantees: an accepted run is never lost; a committed step never changes; an uncommitted step
//! may be computed twice but becomes visible once.
//!
//! The parts, each of which imports only those before it:
//! - data: `spec` (what to run), `progress` (counts), `record` (what users see), `error`;
//! - `store`, the journal in both directions, and `index`, which answers questions about the steps
//!   of a run from it;
//! - `queue`, in which order they begin;
//! - `live`, the runs that this process executes, and `cluster_link`, the other nodes;
//! - `reader`, what users see of runs wherever they are; `labels`, what clients name them by;
//! - `rejudge`, which judges recorded steps again with another verifier;
//! - `bundle`, runs that come from other daemons and leave for them;
//! - `execution`, which accepts, resumes, forks and ends runs;
//! - `service`, [`Runs`]: the owner of all these; `uploads`, the task modules of clients;
//!   `deliveries` sends messages to webhooks, `outbox` shows them; `approvals`, the steps that wait for a person;
//!   `standstills` finds runs that are stuck; `schedules` start runs at times of the clock; `search` notes what runs are found by;
//!   `retention` removes finished runs, by the `trusted_clock`.

mod approvals;
mod bundle;
mod cluster_link;
mod decision;
mod deliveries;
mod error;
mod execution;
mod export;
mod index;
mod labels;
mod live;
mod outbox;
mod progress;
mod queue;
mod reader;
mod record;
mod rejudge;
mod relabel;
mod retention;
mod schedules;
mod search;
mod service;
mod spec;
mod standstills;
mod store;
mod title;
mod trusted_clock;
mod uploads;

pub use approvals::decide::NewDecision;
pub use approvals::policy::ApprovalPolicy;
pub use approvals::record::{ApprovalDecision, ApprovalRecord, ApprovalState, HeldLine};
pub use bundle::{Arrived, BundleError};
pub use decision::decision_name;
pub use error::RunError;
pub use execution::daily_cost::PaidTurn;
pub use execution::fork::Fork;
pub use execution::leases::Leases;
pub use execution::new_run::{Accepted, NewRun};
pub use execution::observers::WrapObserver;
pub use execution::retry::Retry;
pub use export::{
    ChatMessage, DatasetRow, LeftOut, LeftOutStep, PairLine, PreferencePair, Preferred,
};
pub use index::StepIndexes;
pub use index::divergence::{Divergence, RunComparison};
pub use index::explanation::{ConstraintMeaning, WhatFollowed};
pub use index::find::{FoundStep, Wanted};
pub use index::landmarks::{RunVote, TrajectoryEnd};
pub use index::shape::{Column, TrajectoryShape};
pub use index::step_detail::{StackFrame, StepDetail};
pub use index::step_list::{StepList, StepSummary};
pub use index::tree::{Course, RoundNode, RunTree, TrajectoryNode};
pub use labels::{BadLabels, LabelChanges, LabelMap, Labels, check_labels, check_wanted_label};
pub use live::live_run::LiveRun;
pub use live::writings::{TurnWriting, Writings};
pub use outbox::{FailedAttempt, MessageState, WebhookMessage, WebhookReport};
pub use reader::RunReader;
pub use reader::comparison::{ArmFigures, Comparison};
pub use reader::event_reader::EventBatch;
pub use reader::listing::{RunPage, WhyFound};
pub use reader::overview::{Figures, NamedFigures, Overview, RefusedBy};
pub use reader::trace::TraceContent;
pub use record::{Imported, RunRecord, Status, timestamp};
pub use rejudge::{Change, ChangedStep, JudgedLine, Rejudge, RejudgedRun, Rejudging};
pub use retention::Cleanup;
pub use schedules::{ScheduleError, ScheduleReport, Schedules};
pub use search::{Excerpt, ExcerptPiece, SearchedPart, searched_text};
pub use service::Runs;
pub use spec::{Origin, Queueing, RunSpec, needs_of, rank_of};
pub use store::RunStore;
pub use store::event_stream::Committed;
pub use store::replay::BeforeStep;
pub use store::reviews::{FlaggedStep, ReviewDecision, ReviewLine};
pub use uploads::{UploadError, Uploaded};
