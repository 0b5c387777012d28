//! Graph algorithms: a lesson a file.

mod a_star;
mod bfs_on_graph;
mod dfs_on_tree;
mod dijkstra;
mod floyd_warshall;
mod topological_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<dfs_on_tree::Of>(),
    AnyLesson::of::<bfs_on_graph::Of>(),
    AnyLesson::of::<dijkstra::Of>(),
    AnyLesson::of::<topological_sort::Of>(),
    AnyLesson::of::<floyd_warshall::Of>(),
    AnyLesson::of::<a_star::Of>(),
];
