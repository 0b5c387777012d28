//! Binary Heap Operations: insertions into a min-heap in an array, and extractions of its least
//! element.
//!
//! A step is one action line: `insert x` or `extract` begins an operation, `swap i j` moves an
//! element up or down, `done`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::heap_operations as page;
use crate::tasks::prelude::*;

/// The task `heap-operations`.
pub struct HeapOperations;

const OPERATIONS_MAX: usize = 4_096;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The operations, in order; none extracts from an empty heap.
    pub ops: Vec<Operation>,
}

/// `insert x` or `extract`, written as in an action line.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Operation {
    /// Insert this value, below 2^53.
    Insert(usize),
    /// Extract the least value.
    Extract,
}

impl Operation {
    fn action(self) -> Action {
        match self {
            Self::Insert(x) => Action::Insert(x),
            Self::Extract => Action::Extract,
        }
    }
}

impl From<Operation> for String {
    fn from(operation: Operation) -> Self {
        operation.action().to_string()
    }
}

impl TryFrom<String> for Operation {
    type Error = String;

    fn try_from(line: String) -> Result<Self, String> {
        match Action::parse(&line) {
            Some(Action::Insert(x)) => Ok(Self::Insert(x)),
            Some(Action::Extract) => Ok(Self::Extract),
            _ => Err(format!(
                "{line:?} is not an operation: \"insert <x>\" with a number below 2^53, or \"extract\""
            )),
        }
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The min-heap; the children of place i are at 2i+1 and 2i+2.
    pub heap: Vec<usize>,
    /// Number of operations begun.
    pub op: usize,
    /// Place of the element that moves up or down; -1 before the first operation.
    pub node: OptionalIndex,
    /// The values extracted, in order.
    pub extracted: Vec<usize>,
    /// Number of `swap` so far.
    pub swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `insert x`: begins an insertion by appending x to the heap.
    Insert(x) = "insert",
    /// Begins an extraction: the last element takes the place of the root.
    Extract = "extract",
    /// `swap i j`: exchanges places i and j of the heap; the element continues at j.
    Swap(i, j) = "swap",
    /// Ends the trace.
    Done = "done",
});

fn parent(i: usize) -> Option<usize> {
    Some(i.checked_sub(1)? / 2)
}

/// The exchange that the element at `i` still needs on its way up or down.
fn sift(heap: &[usize], i: usize, up: bool) -> Option<Action> {
    let value = heap.get(i)?;
    let target = if up {
        parent(i).filter(|p| value < &heap[*p])
    } else {
        let children = (2 * i + 1..heap.len()).take(2);
        children.min_by_key(|child| heap[*child]).filter(|child| heap[*child] < *value)
    };
    target.map(|target| Action::Swap(i, target))
}

/// Returns whether no element is greater than a child of it; pairs with `exempt` do not count.
fn is_heap(heap: &[usize], exempt: Option<usize>) -> bool {
    (1..heap.len()).all(|child| {
        let above = (child - 1) / 2;
        heap[above] <= heap[child] || exempt == Some(child) || exempt == Some(above)
    })
}

/// Returns whether an exchange of `i` and `j` moves the element that is on its way: up after an
/// insertion, to the lesser child after an extraction, the left one if they are equal.
fn is_on_path(ops: &[Operation], state: &State, i: usize, j: usize) -> bool {
    let heap = &state.heap;
    let operation = state.op.checked_sub(1).and_then(|op| ops.get(op));

    let target = match operation {
        Some(Operation::Insert(_)) => parent(i),
        Some(Operation::Extract) => {
            (2 * i + 1..heap.len()).take(2).min_by_key(|child| heap[*child])
        }
        None => None,
    };
    state.node == OptionalIndex::some(i) && target == Some(j)
}

/// Returns whether heap and extracted together hold what the operations begun have inserted.
fn holds_inserted(state: &State, begun: &[Operation]) -> bool {
    let inserted = begun.iter().filter_map(|operation| match operation {
        Operation::Insert(x) => Some(*x),
        Operation::Extract => None,
    });

    let mut inserted: Vec<_> = inserted.collect();
    let mut held: Vec<_> = state.heap.iter().chain(&state.extracted).copied().collect();

    if inserted.len() != held.len() {
        return false;
    }

    inserted.sort_unstable();
    held.sort_unstable();
    inserted == held
}

/// Returns whether each extraction took the least element there was, by a queue that knows no
/// places.
fn takes_least(instance: &Instance, extracted: &[usize]) -> bool {
    let mut queue = BinaryHeap::new();
    let mut taken = extracted.iter().copied();

    let agree = instance.ops.iter().all(|operation| match *operation {
        Operation::Insert(x) => {
            queue.push(Reverse(x));
            true
        }
        Operation::Extract => taken.next() == queue.pop().map(|Reverse(least)| least),
    });

    agree && taken.next().is_none()
}

impl Task for HeapOperations {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let m = page::size::M.draw(difficulty, rng);
            let (mut size, mut extracts) = (0, 0);

            let mut operation = || {
                if size == 0 || rng.chance(3, 5) {
                    size += 1;
                    Operation::Insert(rng.size(1, 999))
                } else {
                    size -= 1;
                    extracts += 1;
                    Operation::Extract
                }
            };

            let instance = Instance { ops: (0..m).map(|_| operation()).collect() };
            let swaps = |(state, _): (State, u64)| state.swaps;

            if 5 * extracts >= m
                && reference_end::<Self>(&instance, u64::MAX)
                    .map(swaps)
                    .is_some_and(|swaps| swaps > 0)
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let m = instance.ops.len();
        let range = format!("has {m} operations; give 1 to {OPERATIONS_MAX}");
        InvalidInput::unless((1..=OPERATIONS_MAX).contains(&m), "ops", range)?;

        let size = instance.ops.iter().try_fold(0usize, |size, operation| match operation {
            Operation::Insert(_) => Some(size + 1),
            Operation::Extract => size.checked_sub(1),
        });
        InvalidInput::unless(size.is_some(), "ops", "must not extract from an empty heap")
    }

    fn start(_: &Instance) -> State {
        State {
            heap: Vec::new(),
            op: 0,
            node: OptionalIndex::NONE,
            extracted: Vec::new(),
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(_: &Instance, _: &State) -> Result<(), InvalidInput> {
        // Places are looked up with a check, and numbers only grow by one.
        Ok(())
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Insert(x) => {
                state.node = OptionalIndex::some(state.heap.len());
                state.heap.push(x);
                state.op += 1;
            }
            Action::Extract => {
                let least = *state.heap.first().ok_or(Illegal("the heap is empty"))?;
                state.extracted.push(least);
                // The last element takes the place of the first and sinks from there.
                state.heap.swap_remove(0);
                state.node = OptionalIndex::some(0);
                state.op += 1;
            }
            Action::Swap(i, j) => {
                if i >= state.heap.len() || j >= state.heap.len() {
                    return Err(Illegal("there is no such place in the heap"));
                }
                state.heap.swap(i, j);
                state.node = OptionalIndex::some(j);
                state.swaps += 1;
            }
            Action::Done => {}
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        let ops = &instance.ops;
        let exchange = match (state.op.checked_sub(1), state.node.get()) {
            // After wrong lines more operations may have begun than there are.
            (Some(op), Some(node)) => {
                sift(&state.heap, node, matches!(ops.get(op)?, Operation::Insert(_)))
            }
            _ => None,
        };

        if exchange.is_some() {
            return exchange;
        }

        match ops.get(state.op) {
            // After wrong lines there may be nothing to extract.
            Some(Operation::Extract) if state.heap.is_empty() => None,
            operation => Some(operation.map_or(Action::Done, |operation| operation.action())),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `multiset`, `size` and `counts` leave the input's
        // operations in their order, `settled` no other line until the element on its way is in its
        // place, and `sift-path` and `swap-order` one exchange, where one is due.
        let begun = &instance.ops[..after.op.min(instance.ops.len())];
        found.require(page::MULTISET, holds_inserted(after, begun));

        found.require(page::HEAP_ORDER, is_heap(&after.heap, after.node.get()));

        let extracts =
            begun.iter().filter(|operation| matches!(operation, Operation::Extract)).count();
        found.require(page::SIZE, after.extracted.len() == extracts);

        let is_settled = || is_heap(&before.heap, None);
        found.require(page::SETTLED, matches!(action, Action::Swap(..)) || is_settled());

        if let Action::Swap(i, j) = *action {
            found.require(page::SIFT_PATH, is_on_path(&instance.ops, before, i, j));
            found.require(page::SWAP_ORDER, after.heap[i.min(j)] < after.heap[i.max(j)]);
        }

        found.require(page::COUNTS, after.op <= instance.ops.len());

        if *action == Action::Done {
            let complete = after.op == instance.ops.len() && is_heap(&after.heap, None);
            found.require(page::COMPLETE, complete && takes_least(instance, &after.extracted));
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // An element moves at most floor(log2(size)) levels in an operation, and the heap has at
        // most m elements.
        let m = instance.ops.len() as u64;
        m + m * u64::from(m.ilog2()) + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "extracted": state.extracted, "heap": state.heap, "swaps": state.swaps })
    }
}
