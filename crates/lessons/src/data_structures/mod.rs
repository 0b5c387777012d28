//! Data structures: a lesson a file.

mod doubly_linked_list;
mod hash_table;
mod lru_cache;
mod queue_simulator;
mod stack_simulator;
mod union_find;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<stack_simulator::StackSimulatorLesson>(),
    AnyLesson::of::<queue_simulator::QueueSimulatorLesson>(),
    AnyLesson::of::<doubly_linked_list::DoublyLinkedListLesson>(),
    AnyLesson::of::<hash_table::HashTableLesson>(),
    AnyLesson::of::<lru_cache::LruCacheLesson>(),
    AnyLesson::of::<union_find::UnionFindLesson>(),
];
