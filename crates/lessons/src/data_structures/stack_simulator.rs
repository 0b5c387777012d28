//! Stack Simulator: nothing to derive; the view shows depth and capacity, or the top.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::stack_simulator::{
    Instance, Operation, StackSimulator, State,
};

use crate::Lesson;
use crate::numbers::interleaved;

pub struct StackSimulatorLesson;

impl Lesson for StackSimulatorLesson {
    type Task = StackSimulator;

    fn view(instance: &Instance, state: &State) -> String {
        let top = || state.stack.last().map_or_else(|| "-".to_owned(), ToString::to_string);
        match instance.operations.get(state.done) {
            Some(Operation::Push(_)) => {
                format!("push {}", interleaved(state.stack.len(), instance.capacity, 2))
            }
            Some(Operation::Pop | Operation::Peek) => format!("top {}", top()),
            None => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        StackSimulator::reference(instance, state).map(|_| String::new())
    }
}
