//! The data structures of PRIME-Bench, one file each.

mod change_phases;
pub mod doubly_linked_list;
pub mod hash_slots;
pub mod hash_table;
mod linked_list;
pub mod lru_cache;
pub mod queue_simulator;
pub mod stack_simulator;
#[cfg(test)]
mod tests;
pub mod union_find;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<stack_simulator::StackSimulator>::new(),
    &Erased::<queue_simulator::QueueSimulator>::new(),
    &Erased::<doubly_linked_list::DoublyLinkedList>::new(),
    &Erased::<hash_table::HashTable>::new(),
    &Erased::<lru_cache::LruCache>::new(),
    &Erased::<union_find::UnionFind>::new(),
];
