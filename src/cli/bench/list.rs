//! `bench list`: the tasks.

use std::process::ExitCode;

use clap::Args;

use crate::cli::output::{Output, count, print};
use crate::cli::table::Table;
use crate::cli::values::category;
use prime_bench::tasks::{self, Category, Spec};

#[derive(Args)]
pub struct ListArguments {
    /// Only this category
    #[arg(long, value_parser = category())]
    category: Option<Category>,
    /// Output format; JSON has sizes and constraints as well
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn row(spec: &Spec) -> [String; 5] {
    [
        spec.id.to_string(),
        spec.slug.to_owned(),
        spec.category.to_string(),
        spec.paper.steps.to_string(),
        format!("{:.1} / {:.1}", spec.paper.baseline, spec.paper.prime),
    ]
}

pub fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let chosen = |spec: &&Spec| arguments.category.is_none_or(|category| spec.category == category);
    let specs: Vec<&Spec> = tasks::all().map(|task| task.spec()).filter(chosen).collect();

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&specs)? + "\n")?,
        Output::Text => {
            let header = ["id", "task", "category", "steps", "paper, %"];
            let table = Table::new(header, specs.iter().map(|spec| row(spec)));
            let tasks = count(specs.len() as u64, "task");
            print(format_args!(
                "{table}\n{tasks}; steps and accuracies (base / PRIME) are those of the paper's models; \
                 `bench show TASK` has sizes and constraints\n"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
