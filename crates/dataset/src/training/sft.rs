//! Supervised fine-tuning: prompts with the reference's completions.

use prime_bench::tasks::{InstanceId, Problem};
use prime_lessons::completion;

use super::states::sampled;
use super::{Ask, Column, Options, assistant, instance_columns, user};

pub struct Row {
    id: InstanceId,
    style: &'static str,
    prompt: String,
    completion: String,
    /// Reference steps before the one that is asked for.
    step: u64,
}

/// The reference trace and its answer, in the form that the prompts ask for.
fn whole_trace(problem: &dyn Problem) -> String {
    let mut text = String::from("<actions>\n");
    let mut machine = problem.start();

    let mut line = String::new();
    while machine.advance(&mut line) {
        text += &line;
        text += "\n";
    }

    let answer = machine.answer().map(|answer| answer.to_string()).unwrap_or_default();
    text + &format!("</actions>\n<answer>\n{answer}\n</answer>")
}

/// The rows of an instance; none if its trace is too long.
pub fn rows(id: &InstanceId, options: &Options) -> Vec<Row> {
    let problem = id.problem();
    let ask = options.ask(id, problem.as_ref());
    let row =
        |prompt, completion, step| Row { id: *id, style: ask.name(), prompt, completion, step };

    if let Ask::Whole(_) = ask {
        if problem.reference().steps > options.lines_max {
            return Vec::new();
        }
        return vec![row(ask.prompt(problem.start().as_ref()), whole_trace(problem.as_ref()), 0)];
    }

    let mut rows = Vec::new();
    sampled(problem.as_ref(), options.steps_max, |step, machine| {
        // Steps that lessons do not teach are left out.
        if let Some(completion) = completion(machine) {
            rows.push(row(ask.prompt(machine), completion, step));
        }
    });

    rows
}

pub fn columns(rows: &[Row]) -> Vec<Column> {
    let mut columns = vec![
        Column::conversations("prompt", rows.iter().map(|row| user(row.prompt.clone()))),
        Column::conversations(
            "completion",
            rows.iter().map(|row| assistant(row.completion.clone())),
        ),
        Column::texts("style", rows.iter().map(|row| row.style)),
        Column::large("step", rows.iter().map(|row| i64::try_from(row.step).unwrap_or(i64::MAX))),
    ];

    columns.extend(instance_columns(rows.iter().map(|row| &row.id)));
    columns
}
