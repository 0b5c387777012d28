//! Simulated systems: a lesson a file.

mod assembly_line;
mod blockchain_ledger;
mod chemical_reaction;
mod elevator_scheduling;
mod file_system;
mod meeting_scheduler;
mod packet_routing;
mod railway_scheduling;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<file_system::Of>(),
    AnyLesson::of::<blockchain_ledger::Of>(),
    AnyLesson::of::<railway_scheduling::Of>(),
    AnyLesson::of::<meeting_scheduler::Of>(),
    AnyLesson::of::<elevator_scheduling::Of>(),
    AnyLesson::of::<packet_routing::Of>(),
    AnyLesson::of::<assembly_line::Of>(),
    AnyLesson::of::<chemical_reaction::Of>(),
];
