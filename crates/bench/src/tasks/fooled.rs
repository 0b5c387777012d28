//! Traces that end in a wrong answer and once broke no constraint but `transition`. The other kinds
//! must find each at a line of its own.

use serde_json::Value;

use super::{Kinds, find};

/// A trace that ends in a wrong answer.
pub struct Fooling {
    pub task: &'static str,
    /// The input as JSON; empty for the example of the task's page.
    pub input: &'static str,
    pub lines: &'static [&'static str],
    /// The line that is found, counted from 0.
    pub at: usize,
    /// The constraint that it breaks.
    pub constraint: &'static str,
}

impl Fooling {
    /// A trace that is cut off after its wrong line.
    pub fn cut(
        task: &'static str,
        input: &'static str,
        lines: &'static [&'static str],
        constraint: &'static str,
    ) -> Self {
        Self { task, input, lines, at: lines.len() - 1, constraint }
    }
}

/// Asserts that each trace breaks its constraint at its wrong line, and nothing before, and that
/// the answer is wrong unless the trace is cut off there.
pub fn assert_found(traces: &[Fooling]) {
    for Fooling { task, input, lines, at, constraint } in traces {
        let listed = find(task).expect("listed");
        let example = listed.spec().page.example.input;
        let text = if input.is_empty() { example } else { *input };
        let input: Value = serde_json::from_str(text).expect("JSON");
        let problem = listed.read_input(&input).unwrap_or_else(|error| panic!("{task}: {error}"));
        let mut machine = problem.start();

        for (step, line) in lines.iter().enumerate() {
            machine
                .propose(line)
                .unwrap_or_else(|refusal| panic!("{task} step {step}: {line}: {refusal}"));
            let broken = machine.violations(Kinds::WITHOUT_TRANSITION);
            let names: Vec<_> = broken.iter(machine.spec()).map(|c| c.name).collect();
            match step.cmp(at) {
                std::cmp::Ordering::Less => assert!(names.is_empty(), "{task} {step}: {names:?}"),
                std::cmp::Ordering::Equal => {
                    assert!(names.contains(constraint), "{task} {step}: {line} breaks {names:?}");
                }
                std::cmp::Ordering::Greater => {}
            }
            machine.commit();
        }

        match machine.answer() {
            Some(answer) => assert!(!problem.accepts(&answer), "{task}: {answer} is wrong"),
            None => assert_eq!(*at + 1, lines.len(), "{task}: the trace ends"),
        }
    }
}
