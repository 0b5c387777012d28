//! The graph algorithms of PRIME-Bench, one file each.

mod a_star;
mod bfs_on_graph;
mod dfs_on_tree;
mod dijkstra;
mod floyd_warshall;
mod topological_sort;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<dfs_on_tree::DfsOnTree>::new(),
    &Of::<bfs_on_graph::BfsOnGraph>::new(),
    &Of::<dijkstra::Dijkstra>::new(),
    &Of::<a_star::AStar>::new(),
    &Of::<floyd_warshall::FloydWarshall>::new(),
    &Of::<topological_sort::TopologicalSort>::new(),
];
