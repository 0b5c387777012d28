//! The data structures of PRIME-Bench, one file each.

mod change_phases;
mod doubly_linked_list;
mod hash_slots;
mod hash_table;
mod linked_list;
mod lru_cache;
mod queue_simulator;
mod stack_simulator;
#[cfg(test)]
mod tests;
mod union_find;

use super::AnyTask;
use super::machine::Erased;

pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<stack_simulator::StackSimulator>::new(),
    &Erased::<queue_simulator::QueueSimulator>::new(),
    &Erased::<doubly_linked_list::DoublyLinkedList>::new(),
    &Erased::<hash_table::HashTable>::new(),
    &Erased::<lru_cache::LruCache>::new(),
    &Erased::<union_find::UnionFind>::new(),
];
