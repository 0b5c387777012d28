//! Graph algorithms: a lesson a file.

mod a_star;
mod bfs_on_graph;
mod dfs_on_tree;
mod dijkstra;
mod floyd_warshall;
mod topological_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<dfs_on_tree::DfsOnTreeLesson>(),
    AnyLesson::of::<bfs_on_graph::BfsOnGraphLesson>(),
    AnyLesson::of::<dijkstra::DijkstraLesson>(),
    AnyLesson::of::<topological_sort::TopologicalSortLesson>(),
    AnyLesson::of::<floyd_warshall::FloydWarshallLesson>(),
    AnyLesson::of::<a_star::AStarLesson>(),
];
