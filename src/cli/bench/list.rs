//! `bench list`: the tasks with sizes, constraints and the paper's figures.

use std::process::ExitCode;

use clap::Args;

use super::super::run::Output;
use super::{say, table};
use prime_bench::tasks::{self, Category, Spec};

#[derive(Args)]
pub struct ListArguments {
    /// Only this category.
    #[arg(long)]
    category: Option<Category>,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn row(spec: &Spec) -> Vec<String> {
    let [easy, medium, hard] = spec.sizes;
    vec![
        spec.id.to_string(),
        spec.slug.to_owned(),
        spec.category.to_string(),
        easy.to_owned(),
        medium.to_owned(),
        hard.to_owned(),
        (spec.constraints.len()).to_string(),
        spec.paper.steps.to_string(),
        format!("{:.1} / {:.1}", spec.paper.baseline, spec.paper.prime),
    ]
}

pub fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let chosen = |spec: &&Spec| arguments.category.is_none_or(|category| spec.category == category);
    let specs: Vec<&Spec> = tasks::all().map(|task| task.spec()).filter(chosen).collect();
    match arguments.output {
        Output::Json => say(&(serde_json::to_string_pretty(&specs)? + "\n")),
        Output::Text => {
            let header = [
                "id",
                "task",
                "category",
                "easy",
                "medium",
                "hard",
                "constraints",
                "paper steps",
                "paper % (base / PRIME)",
            ];
            let text = table(&header, specs.iter().map(|spec| row(spec)));
            say(&format!("{text}\n{} tasks\n", specs.len()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
