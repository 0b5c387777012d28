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
    AnyLesson::of::<file_system::FileSystemLesson>(),
    AnyLesson::of::<blockchain_ledger::BlockchainLedgerLesson>(),
    AnyLesson::of::<railway_scheduling::RailwaySchedulingLesson>(),
    AnyLesson::of::<meeting_scheduler::MeetingSchedulerLesson>(),
    AnyLesson::of::<elevator_scheduling::ElevatorSchedulingLesson>(),
    AnyLesson::of::<packet_routing::PacketRoutingLesson>(),
    AnyLesson::of::<assembly_line::AssemblyLineLesson>(),
    AnyLesson::of::<chemical_reaction::ChemicalReactionLesson>(),
];
