//! The simulated systems of PRIME-Bench, one file each.

mod assembly_line;
mod blockchain_ledger;
mod chemical_reaction;
mod elevator_scheduling;
mod elevator_turn;
mod file_command;
mod file_system;
mod file_tree;
mod meeting_scheduler;
mod packet_routing;
mod railway_scheduling;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<file_system::FileSystem>::new(),
    &Of::<blockchain_ledger::BlockchainLedger>::new(),
    &Of::<railway_scheduling::RailwayScheduling>::new(),
    &Of::<meeting_scheduler::MeetingScheduler>::new(),
    &Of::<elevator_scheduling::ElevatorScheduling>::new(),
    &Of::<packet_routing::PacketRouting>::new(),
    &Of::<assembly_line::AssemblyLine>::new(),
    &Of::<chemical_reaction::ChemicalReaction>::new(),
];
