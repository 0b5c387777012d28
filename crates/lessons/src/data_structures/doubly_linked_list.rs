//! Doubly Linked List: the neighbours of the node that the operation names; a find compares the
//! next value.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::doubly_linked_list::{
    DoublyLinkedList, Instance, Operation, State,
};

use crate::Lesson;
use crate::numbers::interleaved;

pub struct DoublyLinkedListLesson;

impl Lesson for DoublyLinkedListLesson {
    type Task = DoublyLinkedList;

    fn view(instance: &Instance, state: &State) -> String {
        let State { list, created, cursor, .. } = state;
        let (head, tail) = (list.head, list.tail);

        let node = |id: usize| match list.node(id) {
            Some(node) => format!("between {} {}", node.prev, node.next),
            None => "gone".to_owned(),
        };

        match instance.operations.get(state.done).copied() {
            Some(Operation::PushFront(_)) => format!("push_front {created} head {head}"),
            Some(Operation::PushBack(_)) => format!("push_back {created} tail {tail}"),
            Some(Operation::InsertAfter(id, _)) => {
                format!("insert_after {id} {created} {}", node(id))
            }
            Some(Operation::Delete(id)) => format!("delete {id} {}", node(id)),
            Some(Operation::MoveFront(id)) => match cursor.get() {
                Some(waiting) => format!("move_front {waiting} head {head}"),
                None => format!("move_front {id} head {head} {}", node(id)),
            },
            Some(Operation::Find(value)) => {
                let next = list.next(*cursor).get();
                let found =
                    next.and_then(|id| list.node(id)).map(|node| interleaved(node.value, value, 2));
                match (next, found) {
                    (Some(id), Some(found)) => format!("find {found} {id}"),
                    (Some(id), None) => format!("find gone {id}"),
                    (None, _) => "find -".to_owned(),
                }
            }
            None => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        DoublyLinkedList::reference(instance, state).map(|_| String::new())
    }
}
