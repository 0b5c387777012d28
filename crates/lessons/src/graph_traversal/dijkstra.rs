//! Dijkstra: compares the distance through the extracted vertex with the known one, or finds the
//! least in the queue.
// In the queue a vertex is two letters, a small one for the tens: `gE014` is vertex 64 at distance
// 14.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::dijkstra::{Action, Dijkstra, Instance, State};

use crate::Lesson;
use crate::numbers::{compared, sum};

pub struct DijkstraLesson;

/// Digits of a distance.
const WIDTH: usize = 3;

/// The arc that is looked at next: it leaves the vertex extracted last and follows the latest arc.
fn arc(instance: &Instance, state: &State) -> Option<(usize, usize, usize)> {
    let u = *state.order.last()?;

    let graph = instance.graph();
    let (v, weight) = match state.last.0? {
        Action::Extract(_) => graph.arcs(u).first().copied()?,
        Action::Relax(v, _) | Action::Keep(v) => graph.arc_after(u, v)?,
        Action::Done => return None,
    };

    Some((u, v, weight))
}

/// The vertices that are reached and not extracted, with their distances.
fn queue(instance: &Instance, state: &State) -> Vec<(usize, usize)> {
    let mut waiting = vec![true; instance.n];
    state.order.iter().for_each(|u| waiting[*u] = false);
    (0..instance.n).filter(|u| waiting[*u]).filter_map(|u| Some((u, state.dist[u]?))).collect()
}

impl Lesson for DijkstraLesson {
    type Task = Dijkstra;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }

        let distance = |u: usize| {
            state.dist[u].map_or_else(|| "-".to_owned(), |dist| format!("{dist:0WIDTH$}"))
        };

        match arc(instance, state) {
            Some((u, v, weight)) => {
                format!("{u:02}:{} to {v:02}:{} weight {weight:02}", distance(u), distance(v))
            }
            None => {
                let queue: String = queue(instance, state)
                    .iter()
                    .map(|(u, dist)| format!("{}{dist:0WIDTH$}", name(*u)))
                    .collect::<Vec<_>>()
                    .concat();
                format!("queue {queue}end")
            }
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        Dijkstra::reference(instance, state)?;

        Some(match arc(instance, state) {
            Some((u, v, weight)) => {
                let to_u = state.dist[u]?;
                let added = format!("{} {:0WIDTH$}", sum(to_u, weight, WIDTH), to_u + weight);
                match state.dist[v] {
                    Some(known) => format!("{added} {}", compared(to_u + weight, known, WIDTH)),
                    None => added,
                }
            }
            None => least(&queue(instance, state)),
        })
    }
}

fn name(vertex: usize) -> String {
    match (('a'..='j').nth(vertex / 10), ('A'..='J').nth(vertex % 10)) {
        (Some(tens), Some(units)) => format!("{tens}{units}"),
        _ => "~".to_owned(),
    }
}

/// Each vertex with `l` and its distance if it is nearer than those before, else with `g`; then the
/// nearest.
fn least(queue: &[(usize, usize)]) -> String {
    let mut nearest: Option<(usize, usize)> = None;
    let mut line = String::new();

    for (u, dist) in queue {
        line += &name(*u);
        if nearest.is_none_or(|(least, _)| *dist < least) {
            nearest = Some((*dist, *u));
            line += &format!("l{dist:0WIDTH$}");
        } else {
            line.push('g');
        }
    }

    line + &nearest.map_or_else(String::new, |(_, u)| format!(" {}", name(u)))
}
