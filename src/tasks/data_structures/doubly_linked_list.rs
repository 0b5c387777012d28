//! Doubly Linked List: nodes are linked in, unlinked, moved to the front and searched for.
//!
//! A step is one link or unlink, one node that a find passes, or one result without a change of pointers.

use std::fmt;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::tasks::operation::{as_text, validate_count};
use crate::tasks::optional::Optional;
use crate::tasks::pages::doubly_linked_list as page;
use crate::tasks::pattern::Fields;
use crate::tasks::spec::{Difficulty, Spec};
use crate::tasks::task::{Illegal, InvalidInput, Last, Task};
use crate::tasks::word_actions::word_actions;
use crate::tasks::{Draw, Violations};

pub struct DoublyLinkedList;

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    operations: Vec<Operation>,
}

word_actions!(Operation {
    PushFront(value) = "push_front",
    PushBack(value) = "push_back",
    InsertAfter(id, value) = "insert_after",
    Delete(id) = "delete",
    MoveFront(id) = "move_front",
    Find(value) = "find",
});
as_text!(Operation);

impl Operation {
    /// The value of the node that the operation creates.
    fn creates(self) -> Option<usize> {
        match self {
            Self::PushFront(value) | Self::PushBack(value) | Self::InsertAfter(_, value) => Some(value),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
struct Node {
    value: usize,
    prev: Option<usize>,
    next: Option<usize>,
}

/// All nodes ever created by id; those that left the list are gone.
#[derive(Clone)]
struct Nodes(Vec<Option<Node>>);

impl Nodes {
    fn iter(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.0.iter().enumerate().filter_map(|(id, node)| Some((id, node.as_ref()?)))
    }

    fn count(&self) -> usize {
        self.iter().count()
    }
}

impl Serialize for Nodes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for (id, node) in self.iter() {
            list.serialize_element(&(id, node.value, Optional(node.prev), Optional(node.next)))?;
        }
        list.end()
    }
}

#[derive(Clone, Serialize)]
pub struct State {
    done: usize,
    nodes: Nodes,
    head: Optional,
    tail: Optional,
    cursor: Optional,
    held: Optional,
    created: usize,
    visits: usize,
    errors: usize,
    last: Last<Action>,
}

impl State {
    fn node(&self, id: usize) -> Option<&Node> {
        self.nodes.0.get(id)?.as_ref()
    }

    fn node_mut(&mut self, id: usize) -> Option<&mut Node> {
        self.nodes.0.get_mut(id)?.as_mut()
    }

    /// What follows a node, or the front end of the list.
    fn next(&self, at: Option<usize>) -> Option<usize> {
        at.map_or(self.head.0, |id| self.node(id)?.next)
    }

    /// What precedes a node, or the back end of the list.
    fn prev(&self, at: Option<usize>) -> Option<usize> {
        at.map_or(self.tail.0, |id| self.node(id)?.prev)
    }

    fn set_next(&mut self, at: Option<usize>, next: Option<usize>) {
        match at {
            None => self.head.0 = next,
            Some(id) => self.node_mut(id).into_iter().for_each(|node| node.next = next),
        }
    }

    fn set_prev(&mut self, at: Option<usize>, prev: Option<usize>) {
        match at {
            None => self.tail.0 = prev,
            Some(id) => self.node_mut(id).into_iter().for_each(|node| node.prev = prev),
        }
    }

    fn in_list(&self, place: Option<usize>) -> bool {
        place.is_none_or(|id| self.node(id).is_some())
    }

    /// Whether next and prev contradict each other nowhere.
    fn is_symmetric(&self) -> bool {
        let nodes = self.nodes.iter().all(|(id, node)| {
            let next = node.next.is_none_or(|next| self.node(next).is_some_and(|next| next.prev == Some(id)));
            next && node.prev.is_none_or(|prev| self.node(prev).is_some_and(|prev| prev.next == Some(id)))
        });
        let head = self.head.0.is_none_or(|head| self.node(head).is_some_and(|node| node.prev.is_none()));
        let tail = self.tail.0.is_none_or(|tail| self.node(tail).is_some_and(|node| node.next.is_none()));
        nodes && head && tail
    }

    /// Whether the way from the head by next meets every node once and ends at the tail.
    fn is_one_path(&self) -> bool {
        let count = self.nodes.count();
        let (mut at, mut end, mut met) = (self.head.0, None, 0);
        while let Some(id) = at {
            let Some(node) = self.node(id).filter(|_| met < count) else { return false };
            met += 1;
            (end, at) = (at, node.next);
        }
        met == count && end == self.tail.0
    }

    /// The front node, and those after it by `step`, to the end of a list that may be wrong.
    fn walk(&self, from: Option<usize>, step: impl Fn(&Node) -> Option<usize>) -> Vec<(usize, usize)> {
        let nodes = std::iter::successors(from, |id| step(self.node(*id)?));
        nodes.map_while(|id| Some((id, self.node(id)?.value))).take(self.nodes.count()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Link(usize, Option<usize>, Option<usize>),
    Unlink(usize, Option<usize>, Option<usize>),
    At(usize),
    Found(usize),
    Missing,
    Stay,
    Error,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |place: Option<usize>| place.map_or("-".to_owned(), |id| id.to_string());
        match *self {
            Self::Link(id, prev, next) => write!(f, "link {id} {} {}", end(prev), end(next)),
            Self::Unlink(id, prev, next) => write!(f, "unlink {id} {} {}", end(prev), end(next)),
            Self::At(id) => write!(f, "at {id}"),
            Self::Found(id) => write!(f, "found {id}"),
            Self::Missing => f.write_str("missing"),
            Self::Stay => f.write_str("stay"),
            Self::Error => f.write_str("error"),
        }
    }
}

/// An operation, by the percentages of the page; `living` are the ids in the list.
fn operation(living: &[usize], created: usize, draw: &mut Draw) -> Operation {
    let kind = draw.below(100);
    let value = draw.index(31);
    // Also the id that the next node will get: one that is not in the list.
    let mut id = || if draw.chance(7, 8) && !living.is_empty() { draw.one_of(living) } else { draw.index(created + 1) };
    match kind {
        0..15 => Operation::PushFront(value),
        15..30 => Operation::PushBack(value),
        30..50 => Operation::InsertAfter(id(), value),
        50..70 => Operation::Delete(id()),
        70..80 => Operation::MoveFront(id()),
        _ => Operation::Find(value),
    }
}

impl Task for DoublyLinkedList {
    type Instance = Instance;
    type State = State;
    type Action = Action;

    const SPEC: Spec = Spec {
        actions: &[
            "link <nat> <nat?> <nat?>",
            "unlink <nat> <nat?> <nat?>",
            "at <nat>",
            "found <nat>",
            "missing",
            "stay",
            "error",
        ],
        ..page::SPEC
    };

    fn generate(difficulty: Difficulty, draw: &mut Draw) -> Instance {
        loop {
            let count = page::size::OPERATIONS.draw(difficulty, draw);
            let (mut living, mut created) = (Vec::new(), 0);
            let mut operations = Vec::with_capacity(count);
            // How often each kind that must occur does.
            let mut occurs = [false; 5];
            for _ in 0..count {
                let operation = operation(&living, created, draw);
                match operation {
                    Operation::PushFront(_) => occurs[0] = true,
                    Operation::PushBack(_) => occurs[1] = true,
                    Operation::InsertAfter(..) => occurs[2] = true,
                    Operation::Delete(id) => {
                        occurs[3] = true;
                        living.retain(|node| *node != id);
                    }
                    Operation::MoveFront(_) => {}
                    Operation::Find(_) => occurs[4] = true,
                }
                let fails = matches!(operation, Operation::InsertAfter(id, _) if !living.contains(&id));
                if operation.creates().is_some() && !fails {
                    living.push(created);
                    created += 1;
                }
                operations.push(operation);
            }
            if living.len() >= 2 && occurs.into_iter().all(|occurs| occurs) {
                return Instance { operations };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        validate_count("operations", instance.operations.len())
    }

    fn start(_: &Instance) -> State {
        State {
            done: 0,
            nodes: Nodes(Vec::new()),
            head: Optional::NONE,
            tail: Optional::NONE,
            cursor: Optional::NONE,
            held: Optional::NONE,
            created: 0,
            visits: 0,
            errors: 0,
            last: Last(None),
        }
    }

    fn read(form: usize, fields: &Fields<'_>) -> Option<Action> {
        Some(match form {
            0 => Action::Link(fields.nat(0)?, fields.optional(1)?, fields.optional(2)?),
            1 => Action::Unlink(fields.nat(0)?, fields.optional(1)?, fields.optional(2)?),
            2 => Action::At(fields.nat(0)?),
            3 => Action::Found(fields.nat(0)?),
            4 => Action::Missing,
            5 => Action::Stay,
            _ => Action::Error,
        })
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        const NO_NODE: Illegal = Illegal("there is no such node in the list");
        const NO_RESULT: Illegal = Illegal("the operation has no such step");
        let operation = *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        let moves = matches!(operation, Operation::MoveFront(_));
        // The node that a move has unlinked and not yet linked again.
        let waiting = state.cursor.0.filter(|_| moves);
        let mut finished = true;
        match *action {
            Action::Link(id, prev, next) => {
                let (due, value) = match (operation.creates(), waiting) {
                    (Some(value), _) => (state.created, value),
                    (None, Some(waiting)) => (waiting, state.held.0.ok_or(NO_RESULT)?),
                    (None, None) => return Err(NO_RESULT),
                };
                if id != due {
                    return Err(Illegal("this is not the node to link"));
                }
                if !state.in_list(prev) || !state.in_list(next) {
                    return Err(NO_NODE);
                }
                let node = Some(Node { value, prev, next });
                if waiting.is_some() {
                    state.nodes.0[id] = node;
                    state.cursor = Optional::NONE;
                    state.held = Optional::NONE;
                } else {
                    state.nodes.0.push(node);
                    state.created += 1;
                }
                state.set_next(prev, Some(id));
                state.set_prev(next, Some(id));
            }
            Action::Unlink(id, prev, next) => {
                if waiting.is_some() || !(moves || matches!(operation, Operation::Delete(_))) {
                    return Err(NO_RESULT);
                }
                let value = state.node(id).ok_or(NO_NODE)?.value;
                if !state.in_list(prev) || !state.in_list(next) {
                    return Err(NO_NODE);
                }
                state.set_next(prev, next);
                state.set_prev(next, prev);
                state.nodes.0[id] = None;
                if moves {
                    state.cursor = id.into();
                    state.held = value.into();
                    finished = false;
                }
            }
            Action::At(id) | Action::Found(id) => {
                if !matches!(operation, Operation::Find(_)) {
                    return Err(NO_RESULT);
                }
                state.node(id).ok_or(NO_NODE)?;
                finished = matches!(action, Action::Found(_));
                state.cursor = if finished { Optional::NONE } else { id.into() };
                state.visits += 1;
            }
            Action::Missing if matches!(operation, Operation::Find(_)) => state.cursor = Optional::NONE,
            Action::Stay if moves && waiting.is_none() => {}
            Action::Error if waiting.is_none() => match operation {
                Operation::InsertAfter(..) | Operation::Delete(_) | Operation::MoveFront(_) => state.errors += 1,
                _ => return Err(NO_RESULT),
            },
            Action::Missing | Action::Stay | Action::Error => return Err(NO_RESULT),
        }
        state.done += usize::from(finished);
        state.last = Last(Some(*action));
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let operation = *instance.operations.get(state.done)?;
        let link = |id, prev, next| {
            // After wrong lines a neighbour may be gone: no line can name it.
            (state.in_list(prev) && state.in_list(next)).then_some(Action::Link(id, prev, next))
        };
        let unlink = |id, node: &Node| {
            let in_list = state.in_list(node.prev) && state.in_list(node.next);
            in_list.then_some(Action::Unlink(id, node.prev, node.next))
        };
        match operation {
            Operation::PushFront(_) => link(state.created, None, state.head.0),
            Operation::PushBack(_) => link(state.created, state.tail.0, None),
            Operation::InsertAfter(id, _) => match state.node(id) {
                Some(node) => link(state.created, Some(id), node.next),
                None => Some(Action::Error),
            },
            Operation::Delete(id) => state.node(id).map_or(Some(Action::Error), |node| unlink(id, node)),
            Operation::MoveFront(id) => match (state.cursor.0, state.node(id)) {
                (Some(waiting), _) => link(waiting, None, state.head.0),
                (None, None) => Some(Action::Error),
                (None, Some(_)) if state.head.0 == Some(id) => Some(Action::Stay),
                (None, Some(node)) => unlink(id, node),
            },
            Operation::Find(value) => {
                let Some(id) = state.next(state.cursor.0) else { return Some(Action::Missing) };
                let hit = state.node(id)?.value == value;
                Some(if hit { Action::Found(id) } else { Action::At(id) })
            }
        }
    }

    fn violations(instance: &Instance, before: &State, action: &Action, after: &State) -> Violations {
        let mut found = Violations::NONE;
        found.require(page::BOTH_WAYS, after.is_symmetric());
        found.require(page::REACHABLE, after.is_one_path());
        let (adjacent, grown, shrunk) = match *action {
            Action::Link(_, prev, next) => (before.next(prev) == next && before.prev(next) == prev, 1, 0),
            Action::Unlink(id, prev, next) => (before.next(prev) == Some(id) && before.prev(next) == Some(id), 0, 1),
            _ => (true, 0, 0),
        };
        found.require(page::ADJACENT, adjacent);
        found.require(page::CONSERVATION, before.nodes.count() + grown == after.nodes.count() + shrunk);
        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.operations.len());
        }
        found
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A find passes at most every node created before and then ends; any other operation takes at most two steps.
        let (mut created, mut steps) = (0, 0);
        for operation in &instance.operations {
            steps += if matches!(operation, Operation::Find(_)) { created + 1 } else { 2 };
            created += u64::from(operation.creates().is_some());
        }
        steps
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let backward: Vec<_> = state.walk(state.tail.0, |node| node.prev).into_iter().map(|(id, _)| id).collect();
        json!({
            "forward": state.walk(state.head.0, |node| node.next),
            "backward": backward,
            "created": state.created,
            "visits": state.visits,
            "errors": state.errors,
        })
    }
}
