//! `bench show`: a task with a worked example.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::cli::output::{Output, print};
use crate::cli::values::TaskParser;
use prime_bench::tasks::{self, AnyTask, Spec, pattern};

/// Steps of the example that are shown.
const STEPS_SHOWN: usize = 40;

#[derive(Args)]
pub struct ShowArguments {
    /// Task, such as tower-of-hanoi
    #[arg(value_parser = TaskParser, hide_possible_values = true)]
    task: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn fields(head: &str, list: &[(&str, &str)]) -> String {
    list.iter().fold(format!("\n{head}\n"), |text, (name, meaning)| {
        text + &format!("  {name}: {meaning}\n")
    })
}

fn indented(text: &str) -> String {
    text.trim().lines().fold(String::new(), |text, line| text + "  " + line + "\n")
}

fn page(spec: &Spec) -> String {
    let page = spec.page;
    let mut text = format!("{} ({}, task {}, {})\n", spec.title, spec.slug, spec.id, spec.category);
    for (level, size) in ["easy", "medium", "hard"].into_iter().zip(spec.sizes) {
        text += &format!("  {level}: {size}\n");
    }

    let paper = spec.paper;
    text += &format!(
        "  the paper: {} steps, {:.1} % without and {:.1} % with PRIME\n",
        paper.steps, paper.baseline, paper.prime
    );

    text += &format!("\nProblem\n{}", indented(page.problem));
    text += &format!("\nAlgorithm\n{}", indented(page.algorithm));
    text += &format!("\nA step\n{}", indented(page.step));
    text += &format!("\nInstances\n{}", indented(page.generate));
    text += &fields("Input", page.input);
    text += &fields("Answer", page.answer);
    text += &fields("State", page.state);

    text += "\nActions\n";
    for action in page.actions {
        text +=
            &format!("  {}\n      {}; such as `{}`\n", action.line, action.effect, action.example);
    }

    text += "\nConstraints\n";
    for constraint in spec.constraints {
        let severity = format!("{:?}", constraint.severity).to_lowercase();
        text += &format!(
            "  {} ({}, {severity}): {}\n",
            constraint.name,
            constraint.kind.name(),
            constraint.meaning
        );
    }

    if !page.note.is_empty() {
        text += &format!("\nNote\n{}", indented(page.note));
    }
    text
}

fn example(task: &dyn AnyTask) -> String {
    let page = &task.spec().page.example;
    let example = tasks::worked_example(task, STEPS_SHOWN);
    let mut text = format!("\nExample\n  input: {}\n  start: {}\n", page.input, example.start);
    for (line, state) in &example.steps {
        text += &format!("  {line}\n      {state}\n");
    }

    let left_out = example.steps_total - example.steps.len() as u64;
    if left_out > 0 {
        text += &format!("  ... {left_out} more\n");
    }
    text + &format!("  answer: {}\n  steps: {}\n", page.answer, example.steps_total)
}

pub fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let task = tasks::find(&arguments.task)?;
    let spec = task.spec();
    match arguments.output {
        Output::Text => print(page(spec) + &example(task))?,
        Output::Json => {
            let mut value = serde_json::to_value(spec)?;
            value["page"] = serde_json::to_value(spec.page)?;
            value["grammar"] = json!(pattern::gbnf(spec.actions));
            print(serde_json::to_string_pretty(&value)? + "\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
