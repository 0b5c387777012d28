//! The simulated systems of PRIME-Bench, one file each.

pub mod assembly_line;
pub mod blockchain_ledger;
pub mod chemical_reaction;
pub mod elevator_scheduling;
pub mod elevator_turn;
pub mod file_command;
pub mod file_system;
pub mod file_tree;
pub mod meeting_scheduler;
pub mod packet_routing;
pub mod railway_scheduling;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<file_system::FileSystem>::new(),
    &Erased::<blockchain_ledger::BlockchainLedger>::new(),
    &Erased::<railway_scheduling::RailwayScheduling>::new(),
    &Erased::<meeting_scheduler::MeetingScheduler>::new(),
    &Erased::<elevator_scheduling::ElevatorScheduling>::new(),
    &Erased::<packet_routing::PacketRouting>::new(),
    &Erased::<assembly_line::AssemblyLine>::new(),
    &Erased::<chemical_reaction::ChemicalReaction>::new(),
];
