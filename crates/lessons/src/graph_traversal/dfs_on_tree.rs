//! DFS on Tree: the first neighbour of the top that is not marked as discovered.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::dfs_on_tree::{DfsOnTree, Instance, State};

use crate::Lesson;

pub struct DfsOnTreeLesson;

impl Lesson for DfsOnTreeLesson {
    type Task = DfsOnTree;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0.is_none() {
            return "start".to_owned();
        }

        let Some(top) = state.stack.last() else { return "-".to_owned() };

        let marked = |v: usize| format!("{}{v}", if state.discover[v] > 0 { '+' } else { '-' });
        let neighbours: Vec<_> = instance.graph().neighbours(*top).map(marked).collect();

        format!(
            "{} of {top}",
            if neighbours.is_empty() { "none".to_owned() } else { neighbours.join(" ") }
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        DfsOnTree::reference(instance, state).map(|_| String::new())
    }
}
