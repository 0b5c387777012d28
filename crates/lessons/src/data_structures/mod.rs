//! Data structures: a lesson a file.

mod doubly_linked_list;
mod hash_table;
mod lru_cache;
mod queue_simulator;
mod stack_simulator;
mod union_find;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<stack_simulator::Of>(),
    AnyLesson::of::<queue_simulator::Of>(),
    AnyLesson::of::<doubly_linked_list::Of>(),
    AnyLesson::of::<hash_table::Of>(),
    AnyLesson::of::<lru_cache::Of>(),
    AnyLesson::of::<union_find::Of>(),
];
