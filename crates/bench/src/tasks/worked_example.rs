//! The example of a task's page, solved by the task's own algorithm.

use serde_json::Value;

use super::machine::AnyTask;

/// A small instance with the states that its steps lead to.
#[derive(Debug)]
pub struct WorkedExample {
    /// The example's input.
    pub input: Value,
    /// The state before the first step.
    pub start: Value,
    /// The first steps: each line, and the state after it.
    pub steps: Vec<(String, Value)>,
    /// All steps, those that are left out included.
    pub steps_total: u64,
    /// The answer of the last state.
    pub answer: Value,
}

/// Solves the example of a task's page, and keeps its first steps.
pub fn worked_example(task: &dyn AnyTask, steps_kept: usize) -> WorkedExample {
    let example = &task.spec().page.example;
    let json = |text: &str| {
        serde_json::from_str::<Value>(text).expect("invariant: examples are JSON, as a test shows")
    };

    let input = json(example.input);
    let problem = task.read_input(&input).expect("invariant: examples are inputs, as a test shows");
    let mut machine = problem.start();
    let start = machine.state();

    let (mut steps, mut steps_total) = (Vec::new(), 0);
    while let Some(line) = machine.reference() {
        machine.follow_reference();
        if steps.len() < steps_kept {
            steps.push((line, machine.state()));
        }
        steps_total += 1;
    }

    WorkedExample { input, start, steps, steps_total, answer: json(example.answer) }
}
