//! The graph algorithms of PRIME-Bench, one file each.

pub mod a_star;
pub mod bfs_on_graph;
pub mod dfs_on_tree;
pub mod dijkstra;
pub mod floyd_warshall;
#[cfg(test)]
mod tests;
pub mod topological_sort;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<dfs_on_tree::DfsOnTree>::new(),
    &Erased::<bfs_on_graph::BfsOnGraph>::new(),
    &Erased::<dijkstra::Dijkstra>::new(),
    &Erased::<a_star::AStar>::new(),
    &Erased::<floyd_warshall::FloydWarshall>::new(),
    &Erased::<topological_sort::TopologicalSort>::new(),
];
