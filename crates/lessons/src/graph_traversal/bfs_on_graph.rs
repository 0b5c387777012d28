//! BFS on Graph: the first neighbour of the vertex being visited that has no level, or the head of
//! the queue.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::bfs_on_graph::{Action, BfsOnGraph, Instance, State};

use crate::Lesson;

pub struct BfsOnGraphLesson;

impl Lesson for BfsOnGraphLesson {
    type Task = BfsOnGraph;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }

        let head = state.queue.first().map_or_else(|| "none".to_owned(), ToString::to_string);
        let marked = |v: usize| format!("{}{v}", if state.level[v] >= 0 { '+' } else { '-' });
        let neighbours =
            state.order.last().into_iter().flat_map(|u| instance.graph().neighbours(*u));
        let neighbours: Vec<_> = neighbours.map(marked).collect();

        format!(
            "{} queue {head}",
            if neighbours.is_empty() { "none".to_owned() } else { neighbours.join(" ") }
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        BfsOnGraph::reference(instance, state).map(|_| String::new())
    }
}
