//! Topological Sort: the next successor of the vertex emitted last with one predecessor less, or
//! the head of the queue.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::topological_sort::{
    Action, Instance, State, TopologicalSort,
};

use crate::Lesson;

pub struct TopologicalSortLesson;

impl Lesson for TopologicalSortLesson {
    type Task = TopologicalSort;

    fn view(instance: &Instance, state: &State) -> String {
        let graph = instance.graph();

        let next = match (state.last.0, state.order.last().copied()) {
            (None, _) => None,
            (Some(Action::Emit(_)), Some(u)) => graph.neighbours(u).next(),
            (Some(Action::Dec(v, _)), Some(u)) if graph.joins(u, v) => {
                graph.arc_after(u, v).map(|(v, _)| v)
            }
            _ => return "-".to_owned(),
        };

        let next = next.map_or_else(|| "none".to_owned(), |v| format!("{v} {}", state.indegree[v]));
        format!(
            "next {next} queue {}",
            state.queue.first().map_or_else(|| "none".to_owned(), ToString::to_string)
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        TopologicalSort::reference(instance, state).map(|_| String::new())
    }
}
