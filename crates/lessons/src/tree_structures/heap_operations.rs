//! Binary Heap Operations: compares the node with its parent, or the lesser of its children with
//! the node.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::heap_operations::{
    Action, HeapOperations, Instance, Operation, State,
};

use crate::Lesson;
use crate::numbers::compared;

pub struct HeapOperationsLesson;

/// Width of elements.
const WIDTH: usize = 3;

/// The nodes that the node is compared with.
enum Relatives {
    Parent(usize),
    Children(Vec<usize>),
}

/// The node in question, if it is in the heap, and the places beside it that exist.
fn node(instance: &Instance, state: &State) -> Option<(usize, Relatives)> {
    let (op, node) = (state.op.checked_sub(1)?, state.node.get()?);
    state.heap.get(node)?;

    Some(match instance.ops.get(op)? {
        Operation::Insert(_) => (node, Relatives::Parent(node.checked_sub(1)? / 2)),
        Operation::Extract => (
            node,
            Relatives::Children((2 * node + 1..state.heap.len()).take(2).collect::<Vec<_>>()),
        ),
    })
}

impl Lesson for HeapOperationsLesson {
    type Task = HeapOperations;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }

        let place = |place: usize| format!("{place} {:0WIDTH$}", state.heap[place]);
        let next = match instance.ops.get(state.op) {
            Some(Operation::Insert(value)) => format!("insert {value}"),
            Some(Operation::Extract) if state.heap.is_empty() => "empty".to_owned(),
            Some(Operation::Extract) => "extract".to_owned(),
            None => "done".to_owned(),
        };

        match node(instance, state) {
            Some((node, Relatives::Parent(parent))) => {
                format!("up {} {} next {next}", place(node), place(parent))
            }
            Some((node, Relatives::Children(children))) => {
                let places: Vec<_> = std::iter::once(node).chain(children).map(place).collect();
                format!("down {} next {next}", places.join(" "))
            }
            // After wrong lines there may be more operations begun than there are.
            None if state.op > instance.ops.len() => "-".to_owned(),
            None => format!("next {next}"),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        HeapOperations::reference(instance, state)?;
        let against = |a: usize, b: usize| compared(state.heap[a], state.heap[b], WIDTH);

        Some(match node(instance, state) {
            Some((node, Relatives::Parent(parent))) => against(node, parent),
            Some((node, Relatives::Children(children))) => match children.as_slice() {
                [left, right] => {
                    let lesser =
                        if state.heap[*right] < state.heap[*left] { *right } else { *left };
                    format!("{} {}", against(*left, *right), against(lesser, node))
                }
                [left] => against(*left, node),
                _ => String::new(),
            },
            None => String::new(),
        })
    }
}
