//! The simulated systems of PRIME-Bench, one file each.

pub mod assembly_line;
mod blockchain_ledger;
mod chemical_reaction;
mod elevator_scheduling;
mod elevator_turn;
mod file_command;
mod file_system;
mod file_tree;
mod meeting_scheduler;
pub mod packet_routing;
mod railway_scheduling;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

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
