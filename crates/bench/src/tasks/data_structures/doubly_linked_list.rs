//! Doubly Linked List: nodes are linked in, unlinked, moved to the front and searched for.
//!
//! A step is one link or unlink, one node that a find passes, or one result without a change of
//! pointers.

use super::linked_list::{LinkedList, Node, Nodes};
use crate::tasks::operation::{as_text, validate_count};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::doubly_linked_list as page;
use crate::tasks::prelude::*;

/// The task `doubly-linked-list`.
pub struct DoublyLinkedList;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `push_front v`: a new node at the head.
        PushFront(value) = "push_front",
        /// `push_back v`: a new node at the tail.
        PushBack(value) = "push_back",
        /// `insert_after id v`: a new node after node id.
        InsertAfter(id, value) = "insert_after",
        /// `delete id`: removes node id.
        Delete(id) = "delete",
        /// `move_front id`: makes node id the head.
        MoveFront(id) = "move_front",
        /// `find v`: walks from the head to the first node with value v.
        Find(value) = "find",
    }
);
as_text!(Operation);

impl Operation {
    /// The value of the node that the operation creates.
    pub fn creates(self) -> Option<usize> {
        match self {
            Self::PushFront(value) | Self::PushBack(value) | Self::InsertAfter(_, value) => {
                Some(value)
            }
            _ => None,
        }
    }

    /// The node that the operation names.
    pub fn names(self) -> Option<usize> {
        match self {
            Self::InsertAfter(id, _) | Self::Delete(id) | Self::MoveFront(id) => Some(id),
            Self::PushFront(_) | Self::PushBack(_) | Self::Find(_) => None,
        }
    }

    /// Returns whether a link or unlink is at the place that the operation names.
    fn names_place(self, action: &Action) -> bool {
        match (*action, self) {
            (Action::Link(_, prev, _), Self::PushFront(_) | Self::MoveFront(_)) => {
                prev == OptionalIndex::NONE
            }
            (Action::Link(_, _, next), Self::PushBack(_)) => next == OptionalIndex::NONE,
            (Action::Link(_, prev, _), Self::InsertAfter(id, _)) => prev == OptionalIndex::some(id),
            (Action::Unlink(id, ..), _) => self.names() == Some(id),
            _ => true,
        }
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// The nodes in the list, its head and its tail.
    #[serde(flatten)]
    pub list: LinkedList,
    /// Node last visited by a find, or taken out by a move, in progress; else -1.
    pub cursor: OptionalIndex,
    /// Value of the node taken out by a move in progress; else -1.
    pub held: OptionalIndex,
    /// Number of nodes created, which is the next one's id; ids are not used again.
    pub created: usize,
    /// Nodes visited by finds, matches included.
    pub visits: usize,
    /// Operations so far on ids that are not in the list.
    pub errors: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// The fields as serialised. A flattened list would hide which field is wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    done: usize,
    nodes: Nodes,
    head: OptionalIndex,
    tail: OptionalIndex,
    cursor: OptionalIndex,
    held: OptionalIndex,
    created: usize,
    visits: usize,
    errors: usize,
    last: Last<Action>,
}

impl From<Written> for State {
    fn from(written: Written) -> Self {
        let Written { done, nodes, head, tail, cursor, held, created, visits, errors, last } =
            written;
        Self {
            done,
            list: LinkedList { nodes, head, tail },
            cursor,
            held,
            created,
            visits,
            errors,
            last,
        }
    }
}

impl State {
    /// Returns whether a find reaches the node that it visits, or the end, by following the links.
    fn walks_on(&self, action: &Action) -> bool {
        match *action {
            Action::At(id) | Action::Found(id) => {
                self.list.node(id).is_some_and(|node| node.prev == self.cursor)
            }
            Action::Missing => self.cursor == self.list.tail,
            _ => true,
        }
    }

    fn has_sought_value(&self, operation: Operation, action: &Action) -> bool {
        let holds = |id: usize| match operation {
            Operation::Find(sought) => self.list.node(id).map(|node| node.value == sought),
            _ => None,
        };
        match *action {
            Action::At(id) => holds(id) == Some(false),
            Action::Found(id) => holds(id) == Some(true),
            _ => true,
        }
    }

    /// Returns whether a line without an effect is due: `error` for a missing node, `stay` for the
    /// head. A move may not unlink the head.
    fn has_no_effect(&self, operation: Operation, action: &Action) -> bool {
        let is_head = |id: usize| self.list.head == OptionalIndex::some(id);
        match (*action, operation) {
            (Action::Error, _) => operation.names().is_some_and(|id| self.list.node(id).is_none()),
            (Action::Stay, _) => operation.names().is_some_and(is_head),
            (Action::Unlink(id, ..), Operation::MoveFront(_)) => !is_head(id),
            _ => true,
        }
    }
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Puts a node between `prev` and `next`, each none at an end of the list.
        Link(id: usize, prev: OptionalIndex, next: OptionalIndex) =
            "link <nat> <nat?> <nat?>", "link {id} {prev} {next}";
        /// Takes a node out from between `prev` and `next`.
        Unlink(id: usize, prev: OptionalIndex, next: OptionalIndex) =
            "unlink <nat> <nat?> <nat?>", "unlink {id} {prev} {next}";
        /// A find passes this node.
        At(id: usize) = "at <nat>", "at {id}";
        /// A find ends at this node.
        Found(id: usize) = "found <nat>", "found {id}";
        /// A find ends without a match.
        Missing = "missing", "missing";
        /// A move of the head, which changes nothing.
        Stay = "stay", "stay";
        /// The operation's id is not in the list.
        Error = "error", "error";
    }
}

/// A random operation, with the probabilities of the page. `living` are the ids in the list.
fn operation(living: &[usize], created: usize, rng: &mut TaskRng) -> Operation {
    let kind = rng.below(100);
    let value = rng.index(31);
    // `created` is the id that the next node will get: operations on missing nodes occur too.
    let mut id = || {
        if rng.chance(7, 8) && !living.is_empty() {
            rng.one_of(living)
        } else {
            rng.index(created + 1)
        }
    };
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
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let count = page::size::OPERATIONS.draw(difficulty, rng);
            let (mut living, mut created) = (Vec::new(), 0);
            let mut operations = Vec::with_capacity(count);
            // Flags for the kinds that must occur.
            let mut occurs = [false; 5];

            for _ in 0..count {
                let operation = operation(&living, created, rng);
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

                // An insertion after a missing node creates none.
                let fails =
                    matches!(operation, Operation::InsertAfter(id, _) if !living.contains(&id));
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
            list: LinkedList::new(),
            cursor: OptionalIndex::NONE,
            held: OptionalIndex::NONE,
            created: 0,
            visits: 0,
            errors: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let operations = instance.operations.len();
        limits::at_most("created", state.created, operations)?;

        let ids = state.list.has_ids_below(state.created);
        InvalidInput::unless(ids, "nodes", "must have ids below `created`")?;
        limits::below("cursor", [state.cursor], state.created)?;

        let (at, holds) = (state.cursor != OptionalIndex::NONE, state.held != OptionalIndex::NONE);
        // The cursor is the latest node of a find, or the node that a move has unlinked and whose
        // value is then held.
        let (cursor, held) = match instance.operations.get(state.done) {
            Some(Operation::Find(_)) => (true, false),
            Some(Operation::MoveFront(_)) => (true, at),
            _ => (!at, false),
        };

        InvalidInput::unless(
            cursor,
            "cursor",
            "must be -1 unless the operation is a find or a move_front",
        )?;
        InvalidInput::unless(
            holds == held,
            "held",
            "must be the value of the node that a move has unlinked, or -1",
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        const NO_NODE: Illegal = Illegal("there is no such node in the list");
        const NO_RESULT: Illegal = Illegal("the operation has no such step");

        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        let moves = matches!(operation, Operation::MoveFront(_));
        // The node that a move has unlinked and not yet linked again.
        let waiting = state.cursor.get().filter(|_| moves);

        if let Action::Link(_, prev, next) | Action::Unlink(_, prev, next) = *action
            && !(state.list.knows(prev) && state.list.knows(next))
        {
            return Err(NO_NODE);
        }

        let mut finished = true;
        match *action {
            Action::Link(id, prev, next) => {
                let (due, value) = match (operation.creates(), waiting) {
                    (Some(value), _) => (state.created, value),
                    (None, Some(waiting)) => (waiting, state.held.get().ok_or(NO_RESULT)?),
                    (None, None) => return Err(NO_RESULT),
                };

                if id != due {
                    return Err(Illegal("this is not the node to link"));
                }

                state.list.link(id, Node { value, prev, next });
                if waiting.is_some() {
                    state.cursor = OptionalIndex::NONE;
                    state.held = OptionalIndex::NONE;
                } else {
                    state.created += 1;
                }
            }
            Action::Unlink(id, prev, next) => {
                if waiting.is_some() || !(moves || matches!(operation, Operation::Delete(_))) {
                    return Err(NO_RESULT);
                }
                let value = state.list.node(id).ok_or(NO_NODE)?.value;

                state.list.unlink(id, prev, next);
                if moves {
                    state.cursor = OptionalIndex::some(id);
                    state.held = OptionalIndex::some(value);
                    // The move ends with the link that follows.
                    finished = false;
                }
            }
            Action::At(id) | Action::Found(id) => {
                if !matches!(operation, Operation::Find(_)) {
                    return Err(NO_RESULT);
                }
                state.list.node(id).ok_or(NO_NODE)?;
                finished = matches!(action, Action::Found(_));
                state.cursor = if finished { OptionalIndex::NONE } else { OptionalIndex::some(id) };
                state.visits += 1;
            }
            Action::Missing if matches!(operation, Operation::Find(_)) => {
                state.cursor = OptionalIndex::NONE;
            }
            Action::Stay if moves && waiting.is_none() => {}
            Action::Error if waiting.is_none() => match operation {
                Operation::InsertAfter(..) | Operation::Delete(_) | Operation::MoveFront(_) => {
                    state.errors += 1;
                }
                _ => return Err(NO_RESULT),
            },
            Action::Missing | Action::Stay | Action::Error => return Err(NO_RESULT),
        }

        state.done += usize::from(finished);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let operation = *instance.operations.get(state.done)?;
        let list = &state.list;
        // After wrong lines a neighbour may be missing: no line can name it.
        let known = |prev: OptionalIndex, next: OptionalIndex| {
            Some(()).filter(|()| list.knows(prev) && list.knows(next))
        };
        let link = |id, prev, next| known(prev, next).map(|()| Action::Link(id, prev, next));
        let unlink = |id, node: &Node| {
            known(node.prev, node.next).map(|()| Action::Unlink(id, node.prev, node.next))
        };

        match operation {
            Operation::PushFront(_) => link(state.created, OptionalIndex::NONE, list.head),
            Operation::PushBack(_) => link(state.created, list.tail, OptionalIndex::NONE),
            Operation::InsertAfter(id, _) => match list.node(id) {
                Some(node) => link(state.created, OptionalIndex::some(id), node.next),
                None => Some(Action::Error),
            },
            Operation::Delete(id) => {
                list.node(id).map_or(Some(Action::Error), |node| unlink(id, node))
            }
            Operation::MoveFront(id) => match (state.cursor.get(), list.node(id)) {
                (Some(waiting), _) => link(waiting, OptionalIndex::NONE, list.head),
                (None, None) => Some(Action::Error),
                (None, Some(_)) if list.head == OptionalIndex::some(id) => Some(Action::Stay),
                (None, Some(node)) => unlink(id, node),
            },
            Operation::Find(value) => {
                let Some(id) = list.next(state.cursor).get() else { return Some(Action::Missing) };
                let hit = list.node(id)?.value == value;
                Some(if hit { Action::Found(id) } else { Action::At(id) })
            }
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let (old, new) = (&before.list, &after.list);
        found.require(page::BOTH_WAYS, new.is_symmetric());
        found.require(page::REACHABLE, new.is_one_path());

        let (adjacent, grown, shrunk) = match *action {
            Action::Link(_, prev, next) => (old.next(prev) == next && old.prev(next) == prev, 1, 0),
            Action::Unlink(id, prev, next) => {
                let between = OptionalIndex::some(id);
                (old.next(prev) == between && old.prev(next) == between, 0, 1)
            }
            _ => (true, 0, 0),
        };
        found.require(page::ADJACENT, adjacent);
        found.require(page::CONSERVATION, old.count() + grown == new.count() + shrunk);

        if let Some(operation) = instance.operations.get(before.done) {
            found.require(page::PLACE, operation.names_place(action));
            found.require(page::LIST_ORDER, before.walks_on(action));
            found.require(page::SOUGHT_VALUE, before.has_sought_value(*operation, action));
            found.require(page::NO_EFFECT, before.has_no_effect(*operation, action));
        }

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.operations.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A find passes at most every node created before and then ends; any other operation takes
        // at most two steps.
        let (mut created, mut steps) = (0, 0);
        for operation in &instance.operations {
            steps += if matches!(operation, Operation::Find(_)) { created + 1 } else { 2 };
            created += u64::from(operation.creates().is_some());
        }
        steps
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let list = &state.list;
        let backward: Vec<_> =
            list.walk(list.tail, |node| node.prev).into_iter().map(|(id, _)| id).collect();

        json!({
            "forward": list.walk(list.head, |node| node.next),
            "backward": backward,
            "created": state.created,
            "visits": state.visits,
            "errors": state.errors,
        })
    }
}
