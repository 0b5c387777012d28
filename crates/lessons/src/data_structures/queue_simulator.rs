//! Queue Simulator: adds the count to the head, and takes the capacity away.
// Numbers have their lowest digit first. A difference is written modulo 100, followed by its sign,
// which is the last borrow.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::queue_simulator::{
    Action, Instance, Operation, QueueSimulator, State,
};

use crate::Lesson;
use crate::numbers::low_first;

pub struct QueueSimulatorLesson;

const WIDTH: usize = 2;

impl Lesson for QueueSimulatorLesson {
    type Task = QueueSimulator;

    fn view(instance: &Instance, state: &State) -> String {
        let count = usize::try_from(state.count)
            .map_or_else(|_| state.count.to_string(), |n| low_first(n, WIDTH));
        let front = state.cells.get(state.head).and_then(|cell| cell.get());
        let front = front.map_or_else(|| "-".to_owned(), |value| value.to_string());

        match instance.operations.get(state.done) {
            Some(Operation::Enqueue(_)) => {
                let (head, capacity) =
                    (low_first(state.head, WIDTH), low_first(instance.capacity, WIDTH));
                format!("enqueue {head} {count} {capacity}")
            }
            Some(Operation::Dequeue) => format!("dequeue {} {front} of {count}", state.head),
            Some(Operation::Front) => format!("front {} {front} of {count}", state.head),
            None => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = QueueSimulator::reference(instance, state)?;
        // Only the cell to put into is computed; the other actions copy the view.
        let (Action::Put(cell), Ok(count)) = (action, usize::try_from(state.count)) else {
            return Some(String::new());
        };

        let (sum, capacity) = (state.head + count, instance.capacity);
        let modulus =
            10usize.pow(u32::try_from(sum.max(capacity).to_string().len().max(WIDTH)).ok()?);
        let sign = if sum < capacity { '-' } else { '+' };
        let rest = (modulus + sum).saturating_sub(capacity) % modulus;

        Some(format!("{} {}{sign} {cell:0WIDTH$}", low_first(sum, WIDTH), low_first(rest, WIDTH)))
    }
}
