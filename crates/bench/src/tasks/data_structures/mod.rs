//! The data structures of PRIME-Bench, one file each.

mod doubly_linked_list;
mod hash_slots;
mod hash_table;
mod linked_list;
mod lru_cache;
mod phases;
mod queue_simulator;
mod stack_simulator;
mod union_find;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<stack_simulator::StackSimulator>::new(),
    &Of::<queue_simulator::QueueSimulator>::new(),
    &Of::<doubly_linked_list::DoublyLinkedList>::new(),
    &Of::<hash_table::HashTable>::new(),
    &Of::<lru_cache::LruCache>::new(),
    &Of::<union_find::UnionFind>::new(),
];
